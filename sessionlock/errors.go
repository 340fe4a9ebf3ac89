package sessionlock

import (
	"errors"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/lockkey"
)

var (
	// ErrNotAcquired says that [Manager.TryAcquire] found the lock held by somebody
	// else, of this process or another. It is not held.
	ErrNotAcquired = advisory.ErrNotAcquired
	// ErrLockTimeout says that a lock was not granted within [Timeout]. It is not held.
	ErrLockTimeout = advisory.ErrLockTimeout
	// ErrLost says that a lock that was held may be held by somebody else by now. The
	// error that wraps it says why.
	ErrLost = holder.ErrLost
	// ErrReleased says that a lock was given back before.
	ErrReleased = holder.ErrReleased
	// ErrClosed says that the manager was closed.
	ErrClosed = holder.ErrClosed
	// ErrTooManyLocks says that a lock was not taken because [MaxLocks] are, or because
	// the server's lock table is full.
	ErrTooManyLocks = errors.New("gormlock: too many locks")
	// ErrReentrant says that ctx belongs to a holder of the very lock that is asked for:
	// it would wait for itself.
	ErrReentrant = holder.ErrReentrant
	// ErrPooler says that a pooler stands between the manager and the server, behind
	// which a session lock stays with a server connection that others use.
	ErrPooler = errors.New("gormlock: behind a connection pooler")
	// ErrStandby says that the server is a standby, which would grant what its primary
	// holds.
	ErrStandby = advisory.ErrStandby
	// ErrServer says that the server only looks like PostgreSQL. Its text names the server. See
	// [AllowServer].
	ErrServer = advisory.ErrServer
	// ErrNoExclusion says that two sessions of the server were granted one lock: an
	// engine whose session locks are there by name only.
	ErrNoExclusion = errors.New("gormlock: the server's advisory locks exclude nobody")
	// ErrOption says that the value of an option means nothing.
	ErrOption = advisory.ErrOption
)

// lockError is what became of one key: errors.Is finds the state and the cause, which may be nil.
func lockError(key lockkey.Key, state, cause error, detail string) error {
	return &holder.Error{Thing: "lock", Key: key, State: state, Cause: cause, Detail: detail}
}
