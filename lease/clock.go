package lease

import "time"

// instant is a moment on both clocks of this machine. The monotonic one stands still
// while the machine sleeps, the wall clock is set by people: a lease ends here when either
// says so.
type instant struct {
	mono time.Duration
	wall time.Duration
}

var processStart = time.Now()

func clock() instant {
	now := time.Now()
	return instant{mono: now.Sub(processStart), wall: time.Duration(now.UnixNano())}
}

// since is the longer of the times that the two clocks say have passed.
func (i instant) since(earlier instant) time.Duration {
	return max(i.mono-earlier.mono, i.wall-earlier.wall)
}

// believed is for how long after the sending of a statement its answer is believed: a
// little less than the length of the lease, for clocks that do not run equally fast.
func believed(ttl time.Duration) time.Duration { return ttl - ttl/50 }
