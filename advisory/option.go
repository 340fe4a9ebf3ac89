package advisory

import (
	"fmt"
	"math"
	"time"

	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/lookalike"
)

// Option changes how locks are taken. The set is closed; an option holds no state, so one value can serve many calls.
type Option = lockrequest.Option

// Try does not wait: if any of the locks is held by somebody else the call answers [ErrNotAcquired] at once and keeps
// none. Default: wait.
func Try() Option {
	return lockrequest.OptionFunc(func(t *lockrequest.Terms) error {
		t.Try = true
		return nil
	})
}

// Timeout is the budget of the whole call, whatever the number of keys: past it the call answers [ErrLockTimeout]. It
// is rounded up to a millisecond, the server's unit; zero, negative and longer than the server can count (24 days) is
// [ErrOption]. Default: the session's lock_timeout, which PostgreSQL counts for each lock.
func Timeout(d time.Duration) Option {
	return lockrequest.OptionFunc(func(t *lockrequest.Terms) error {
		if d <= 0 {
			return fmt.Errorf("%w: Timeout(%s) leaves no time, use Try to not wait", ErrOption, d)
		}
		if d > math.MaxInt32*time.Millisecond {
			return fmt.Errorf("%w: Timeout(%s) is more than the server can count, leave it out to wait as long as it takes", ErrOption, d)
		}
		t.Timeout = d
		return nil
	})
}

// Shared takes the locks in shared mode: any number of sessions hold them together, and none exclusively. Default:
// exclusive.
func Shared() Option {
	return lockrequest.OptionFunc(func(t *lockrequest.Terms) error {
		t.Shared = true
		return nil
	})
}

// AllowSnapshot takes the locks at REPEATABLE READ and SERIALIZABLE too, where what the transaction reads may be older
// than the lock. Default: [ErrSnapshotTaken].
func AllowSnapshot() Option {
	return lockrequest.OptionFunc(func(t *lockrequest.Terms) error {
		t.AllowSnapshot = true
		return nil
	})
}

// AllowServer takes the locks on a server that only looks like PostgreSQL too, by the name that [ErrServer] gives it, such
// as "YugabyteDB": whether its locks exclude is then for the caller to know. Can be given for several. Default:
// [ErrServer].
func AllowServer(name string) Option {
	return lockrequest.OptionFunc(func(t *lockrequest.Terms) error {
		if err := lookalike.Check(name); err != nil {
			return fmt.Errorf("%w: AllowServer: %w", ErrOption, err)
		}
		t.Servers = append(t.Servers, name)
		return nil
	})
}
