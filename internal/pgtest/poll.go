package pgtest

import (
	"context"
	"errors"
	"testing"
	"time"
)

// bound is how long a test waits for something before it fails, so that slow machines pass.
const bound = 2 * time.Minute

var errTooLong = errors.New("waited too long")

// Await waits for a value from a channel.
func Await[T any](t testing.TB, what string, c <-chan T) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(bound):
		t.Fatalf("%s: not within %s", what, bound)
	}
}

// Eventually waits until something holds.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if err := poll(context.WithoutCancel(t.Context()), bound, func() (bool, error) { return holds(), nil }); err != nil {
		t.Fatalf("%s: not within %s", what, bound)
	}
}

// poll asks until the answer is true, asking fails, ctx ends, or the time is over.
func poll(ctx context.Context, within time.Duration, ask func() (bool, error)) error {
	limit := time.NewTimer(within)
	defer limit.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		done, err := ask()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return errTooLong
		case <-tick.C:
		}
	}
}
