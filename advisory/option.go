package advisory

import (
	"fmt"
	"math"
	"time"
)

// Option changes how locks are taken. The set is closed; an option holds no state, so one value can serve many calls.
type Option interface {
	apply(*Request) error
}

type option func(*Request) error

func (o option) apply(r *Request) error { return o(r) }

// Try does not wait: if any of the locks is held by somebody else the call answers [ErrNotAcquired] at once and keeps
// none. Default: wait.
func Try() Option {
	return option(func(r *Request) error {
		r.try = true
		return nil
	})
}

// Timeout is the budget of the whole call, whatever the number of keys: past it the call answers [ErrLockTimeout]. It
// is rounded up to a millisecond, the server's unit; zero, negative and longer than the server can count (24 days) is
// [ErrOption]. Default: the session's lock_timeout, which PostgreSQL counts for each lock.
func Timeout(d time.Duration) Option {
	return option(func(r *Request) error {
		if d <= 0 {
			return fmt.Errorf("%w: Timeout(%s) leaves no time, use Try to not wait", ErrOption, d)
		}
		if d > math.MaxInt32*time.Millisecond {
			return fmt.Errorf("%w: Timeout(%s) is more than the server can count, leave it out to wait as long as it takes", ErrOption, d)
		}
		r.timeout = d
		return nil
	})
}

// Shared takes the locks in shared mode: any number of sessions hold them together, and none exclusively. Default:
// exclusive.
func Shared() Option {
	return option(func(r *Request) error {
		for i := range r.locks {
			r.locks[i].shared = true
		}
		return nil
	})
}

// AllowSnapshot takes the locks at REPEATABLE READ and SERIALIZABLE too, where what the transaction reads may be older
// than the lock. Default: [ErrSnapshotTaken].
func AllowSnapshot() Option {
	return option(func(r *Request) error {
		r.allowSnapshot = true
		return nil
	})
}
