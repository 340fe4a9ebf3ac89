// Package cause says why a context ended, in the error of what it cut off. Drivers answer "context canceled", whoever ended
// the context: that a lock was lost, and which, stands in its cause alone.
package cause

import (
	"context"
	"errors"
	"strings"
)

// Add returns err with the cause of ctx where that has ended and says more than err does. errors.Is finds both.
func Add(ctx context.Context, err error) error {
	if err == nil || ctx == nil || ctx.Err() == nil {
		return err
	}
	because := context.Cause(ctx)
	if because == nil || errors.Is(err, because) {
		return err
	}
	return &ended{err, because}
}

type ended struct{ err, cause error }

func (e *ended) Error() string {
	return e.err.Error() + ": " + strings.TrimPrefix(e.cause.Error(), "gormlock: ")
}

func (e *ended) Unwrap() []error { return []error{e.err, e.cause} }

// Because returns err as the end of a longer text of ours, which has said already who speaks.
func Because(err error) error { return reason{err} }

type reason struct{ error }

func (r reason) Error() string { return strings.TrimPrefix(r.error.Error(), "gormlock: ") }

func (r reason) Unwrap() error { return r.error }
