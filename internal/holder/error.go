package holder

import (
	"errors"
	"strings"
	"time"

	"github.com/gormlock/gormlock/lockkey"
)

var (
	// ErrLost says that somebody else may hold the lock by now.
	ErrLost = errors.New("gormlock: lost")
	// ErrReleased says that the lock was already released.
	ErrReleased = errors.New("gormlock: already released")
	// ErrClosed says that the manager was closed.
	ErrClosed = errors.New("gormlock: the manager is closed")
	// ErrReentrant says that ctx already belongs to a holder of this key.
	ErrReentrant = errors.New("gormlock: already held by this context, it would wait for itself")
)

// Error is the outcome of a call for one key. errors.Is finds the state and the cause.
type Error struct {
	Thing  string // what was requested: "lock", "lease"
	Key    lockkey.Key
	State  error
	Cause  error // why, may be nil
	Detail string
	Proven time.Time // for a loss: when the last message was sent whose answer proves that the lock was held, if known
}

func (e *Error) Error() string {
	text := "gormlock: " + e.Thing + " " + e.Key.String() + ": " + bare(e.State)
	if e.Detail != "" {
		text += ", " + e.Detail
	}
	if e.Cause != nil {
		text += ": " + bare(e.Cause)
	}
	return text
}

// Unwrap returns the state and the cause, if there is one.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.State}
	}
	return []error{e.State, e.Cause}
}

// bare is the text of err inside another one.
func bare(err error) string { return strings.TrimPrefix(err.Error(), "gormlock: ") }
