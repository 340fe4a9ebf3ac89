package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/observe"
)

type panicking struct{}

func (panicking) Observe(context.Context, observe.Event) { panic("of an observer, which a test wants") }

// An observer that panics harms neither the caller nor the goroutines of the manager.
func TestObserver_panicsAreContained(t *testing.T) {
	t.Parallel()
	db := tables(t)
	m := open(t, db, lease.Observer(panicking{}))
	k := pgtest.Key(t)
	l := acquire(t, m, k, time.Minute)
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	lost := acquire(t, m, k, time.Minute)
	if _, err := db.ExecContext(t.Context(), "DELETE FROM gormlock_lease"); err != nil {
		t.Fatal(err)
	}
	if err := lost.Renew(t.Context()); err == nil {
		t.Error("a lease whose row is gone was renewed")
	}
	acquire(t, m, k, time.Minute)
}
