package sessionlock_test

import (
	"context"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/sessionlock"
)

type panicking struct{}

func (panicking) Observe(context.Context, observe.Event) { panic("of an observer, which a test wants") }

// An observer that panics harms neither the caller nor the goroutines of the manager.
func TestObserver_panicsAreContained(t *testing.T) {
	t.Parallel()
	m := open(t, sessionlock.Observer(panicking{}))
	k := pgtest.Key(t)
	release(t, acquire(t, m, k))
	lost := acquire(t, m, k)
	pgtest.Kill(t, lost.PID())
	assertLost(t, m, lost)
	release(t, acquire(t, m, k))
}
