package sessionlock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/sessionlock"
)

// Try works with every call that asks for one lock, and one option value serves many calls.
func TestTry(t *testing.T) {
	t.Parallel()
	m, rival := open(t), open(t)
	k, try := pgtest.Key(t), sessionlock.Try()
	never := func(context.Context) error { panic("it runs") }
	l := acquire(t, m, k)
	for name, err := range map[string]error{
		"Do":                     rival.Do(t.Context(), k, never, try),
		"Do in the same process": m.Do(t.Context(), k, never, try),
		"Do, shared":             rival.Do(t.Context(), k, never, try, sessionlock.Shared()),
		"Acquire":                func() error { _, err := rival.Acquire(t.Context(), k, try); return err }(),
		"TryAcquire":             func() error { _, err := rival.TryAcquire(t.Context(), k, try); return err }(),
	} {
		if !errors.Is(err, sessionlock.ErrNotAcquired) {
			t.Errorf("%s: %v", name, err)
		}
	}
	release(t, l)
	for range 2 {
		ran := false
		if err := rival.Do(t.Context(), k, func(context.Context) error { ran = pgtest.Held(t, k); return nil }, try); err != nil || !ran {
			t.Errorf("free: %v, and it ran under the lock: %v", err, ran)
		}
	}
}
