package lease

import (
	"fmt"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
)

// AcquireOption changes how a lease is taken. The set is closed; an option holds no
// state, so one value can serve many calls.
type AcquireOption interface {
	applyAcquire(*request) error
}

type acquireOption func(*request) error

func (o acquireOption) applyAcquire(r *request) error { return o(r) }

// AtLeast keeps the lease taken until d after it was acquired, even if it is released
// before or its holder dies. So a job that many schedulers start runs once, however short
// it is and however far their clocks are apart. d is at most the length of the lease.
// Default: 0.
func AtLeast(d time.Duration) AcquireOption {
	return acquireOption(func(r *request) error {
		if d < 0 {
			return fmt.Errorf("%w: AtLeast(%s) is negative", ErrOption, d)
		}
		return holder.Set(&r.atLeast, d)
	})
}

// NoRenewal lets the lease run out unless [Lease.Renew] is called. So the time of the
// work is limited, however the process behaves. Default: renewed after a third of its
// length, as long as the manager lives.
func NoRenewal() AcquireOption {
	return acquireOption(func(r *request) error { return holder.Set(&r.noRenewal, true) })
}

// Timeout limits the whole call. When it is over the call returns
// [ErrLockTimeout]. Default: only ctx limits it.
func Timeout(d time.Duration) AcquireOption {
	return acquireOption(func(r *request) error {
		r.timeout = d
		return holder.CheckTimeout(d)
	})
}

// maxSlots is how many slots a key can have.
const maxSlots = 2000

// Slots takes one of n slots of the key: it is granted while fewer than n are held, so at most n hold the key
// together. Each slot has fencing tokens of its own. Only the next holder of the same slot supersedes them: see
// [Lease.Slot]. Without Slots a caller holds the whole key, and excludes all slots. Callers may give different n:
// each waits until fewer than its own n are held. Default: the whole key.
func Slots(n int) AcquireOption {
	return acquireOption(func(r *request) error {
		if n < 1 || n > maxSlots {
			return fmt.Errorf("%w: Slots(%d) is not between 1 and %d", ErrOption, n, maxSlots)
		}
		return holder.Set(&r.slots, n)
	})
}

// Data stores data with the lease, for example the address of a leader. Others read it with [Manager.Holder]. It is copied.
// Default: none.
func Data(data []byte) AcquireOption {
	data = append([]byte{}, data...)
	return acquireOption(func(r *request) error { return holder.Set(&r.data, data) })
}

// Try does not wait: a lease that somebody holds is [ErrNotAcquired] at once, as by
// [Manager.TryAcquire]. Default: wait.
func Try() AcquireOption {
	return acquireOption(func(r *request) error { return holder.Set(&r.try, true) })
}
