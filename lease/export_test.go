package lease

import "time"

// Skewed sets the wall clock of a manager off.
func Skewed(by time.Duration) Option {
	h := &hands{}
	h.wall.Store(int64(by))
	return h.option()
}
