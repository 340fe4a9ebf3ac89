// Package cause adds to an error why its context ended. Drivers only answer "context canceled". That a lock was lost,
// and which, is only in the cause of the context.
package cause

import (
	"context"
	"errors"
	"strings"
)

// Add returns err with the cause of ctx, if ctx has ended and its cause says more than err. errors.Is finds both.
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

// Because returns err without its prefix "gormlock: ", for the end of a longer text that has it.
func Because(err error) error { return reason{err} }

type reason struct{ error }

func (r reason) Error() string { return strings.TrimPrefix(r.error.Error(), "gormlock: ") }

func (r reason) Unwrap() error { return r.error }
