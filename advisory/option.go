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

// Try does not wait: if somebody else holds one of the locks, the call returns [ErrNotAcquired] at once and keeps
// none. Default: wait.
func Try() Option {
	return lockrequest.OptionFunc(func(t *lockrequest.Terms) error {
		t.Try = true
		return nil
	})
}

// Timeout limits the whole call, whatever the number of keys. When it is over the call returns [ErrLockTimeout]. It
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

// AllowSnapshot also takes the locks at REPEATABLE READ and SERIALIZABLE, where the transaction may read rows as they
// were before the lock. Default: [ErrSnapshotTaken].
func AllowSnapshot() Option {
	return lockrequest.OptionFunc(func(t *lockrequest.Terms) error {
		t.AllowSnapshot = true
		return nil
	})
}

// AllowServer also takes the locks on a server that only looks like PostgreSQL. Give the name from the text of
// [ErrServer], such as "YugabyteDB". You must know whether its locks exclude. It can be given several times. Default:
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

// AllowPooler lets [SessionLocker] work behind a pooler in session mode, where a connection keeps its server connection
// until it is closed. In any other mode the lock would stay with a server connection that others use, without an error.
// Default: [ErrPooler].
func AllowPooler() Option {
	return lockrequest.OptionFunc(func(t *lockrequest.Terms) error {
		t.AllowPooler = true
		return nil
	})
}
