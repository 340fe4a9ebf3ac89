package sessionlock

import (
	"errors"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/lockkey"
)

var (
	// ErrNotAcquired says that [Manager.TryAcquire] found the lock held by somebody
	// else, in this process or another. The caller does not hold it.
	ErrNotAcquired = advisory.ErrNotAcquired
	// ErrLockTimeout says that a lock was not granted within [Timeout]. The caller does
	// not hold it.
	ErrLockTimeout = advisory.ErrLockTimeout
	// ErrLost says that a lock that was held may be held by somebody else by now. The
	// error that wraps it says why.
	ErrLost = holder.ErrLost
	// ErrReleased says that the lock was already released.
	ErrReleased = holder.ErrReleased
	// ErrClosed says that the manager was closed.
	ErrClosed = holder.ErrClosed
	// ErrTooManyLocks says that a lock was not taken because the manager has
	// [MaxLocks], or because the server's lock table is full.
	ErrTooManyLocks = errors.New("gormlock: too many locks")
	// ErrReentrant says that ctx already belongs to a holder of this lock: it would wait
	// for itself.
	ErrReentrant = holder.ErrReentrant
	// ErrPooler says that there is a pooler between the manager and the server: a
	// session lock would stay with a server connection that others use.
	ErrPooler = advisory.ErrPooler
	// ErrStandby says that the server is a standby, which would grant what its primary
	// holds.
	ErrStandby = advisory.ErrStandby
	// ErrServer says that the server only looks like PostgreSQL. Its text names the server. See
	// [AllowServer].
	ErrServer = advisory.ErrServer
	// ErrNoExclusion says that the server granted one lock to two sessions: its
	// session locks exclude nobody.
	ErrNoExclusion = errors.New("gormlock: the server's advisory locks exclude nobody")
	// ErrOption says that the value of an option makes no sense.
	ErrOption = advisory.ErrOption
)

// lockError is the outcome of a call for one key: errors.Is finds the state and the cause, which
// may be nil.
func lockError(key lockkey.Key, state, cause error, detail string) error {
	return &holder.Error{Thing: "lock", Key: key, State: state, Cause: cause, Detail: detail}
}
