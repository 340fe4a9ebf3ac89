package sessionlock

import (
	"errors"
	"strings"

	"github.com/gormlock/gormlock/advisory"
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
	ErrLost = errors.New("gormlock: lost")
	// ErrReleased says that a lock was given back before.
	ErrReleased = errors.New("gormlock: released already")
	// ErrClosed says that the manager was closed.
	ErrClosed = errors.New("gormlock: the manager is closed")
	// ErrTooManyLocks says that a lock was not taken because [MaxLocks] are, or because
	// the server's lock table is full.
	ErrTooManyLocks = errors.New("gormlock: too many locks")
	// ErrReentrant says that ctx belongs to a holder of the very lock that is asked for:
	// it would wait for itself.
	ErrReentrant = errors.New("gormlock: held by this context already, it would wait for itself")
	// ErrPooler says that a pooler stands between the manager and the server, behind
	// which a session lock stays with a server connection that others use.
	ErrPooler = errors.New("gormlock: behind a connection pooler")
	// ErrStandby says that the server is a standby, which would grant what its primary
	// holds.
	ErrStandby = advisory.ErrStandby
	// ErrNoExclusion says that two sessions of the server were granted one lock: an
	// engine whose session locks are there by name only.
	ErrNoExclusion = errors.New("gormlock: the server's advisory locks exclude nobody")
	// ErrOption says that the value of an option means nothing.
	ErrOption = advisory.ErrOption
)

// lockError is what became of one key: errors.Is finds the state and the cause.
type lockError struct {
	key    lockkey.Key
	state  error
	cause  error // why, may be nil
	detail string
}

func (e *lockError) Error() string {
	text := "gormlock: lock " + e.key.String() + ": " + strings.TrimPrefix(e.state.Error(), "gormlock: ")
	if e.detail != "" {
		text += ", " + e.detail
	}
	if e.cause != nil {
		text += ": " + strings.TrimPrefix(e.cause.Error(), "gormlock: ")
	}
	return text
}

func (e *lockError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.state}
	}
	return []error{e.state, e.cause}
}
