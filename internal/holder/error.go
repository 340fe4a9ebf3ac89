package holder

import (
	"errors"
	"strings"
	"time"

	"github.com/gormlock/gormlock/lockkey"
)

var (
	// ErrLost says that what was held may be held by somebody else by now.
	ErrLost = errors.New("gormlock: lost")
	// ErrReleased says that it was given back before.
	ErrReleased = errors.New("gormlock: released already")
	// ErrClosed says that the manager was closed.
	ErrClosed = errors.New("gormlock: the manager is closed")
	// ErrReentrant says that ctx belongs to a holder of the very key that is asked for.
	ErrReentrant = errors.New("gormlock: held by this context already, it would wait for itself")
)

// Error is what became of one key. errors.Is finds the state and the cause.
type Error struct {
	Thing  string // what was asked for: "lock", "lease"
	Key    lockkey.Key
	State  error
	Cause  error // why, may be nil
	Detail string
	Proven time.Time // of what was lost: when the last message was sent whose answer proves that it was held, where that is known
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

// Unwrap returns the state and, where there is one, the cause.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.State}
	}
	return []error{e.State, e.Cause}
}

// bare is the text of err inside another one.
func bare(err error) string { return strings.TrimPrefix(err.Error(), "gormlock: ") }
