package inspect_test

import (
	"context"
	"testing"
	"time"

	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/sessionlock"
)

// A wait for a session lock has slices. The view shows when the whole wait began, not when the last slice did, and when it ends.
func TestSnapshot_ofAWaitInSlices(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t)
	key := pgtest.Key(t)
	holder, other := pgtest.Conn(t), pgtest.Conn(t)
	lock(t, holder, key)
	m, err := sessionlock.Open(t.Context(), pgtest.DSN(t), sessionlock.Owner("billing-7"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(t.Context())
	done := make(chan error, 1)
	began := time.Now()
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Minute)
		defer cancel()
		l, err := m.Acquire(ctx, key)
		if err == nil {
			err = l.Release(ctx)
		}
		done <- err
	}()
	pgtest.WaitBlocked(t, key, 1)
	pgtest.Eventually(t, "a wait that goes on", func() bool {
		if time.Since(began) < 2*time.Second {
			return false
		}
		v := snapshot(t, db, inspect.Known(key))
		for _, l := range v.Locks {
			if l.Owner == "billing-7" && !l.Granted {
				age := v.Taken.Sub(l.Since)
				if most := time.Since(began); age < time.Second || age > most {
					t.Errorf("it waits for %s, after %s", age, most)
				}
				if want := "takes " + key.String() + ", timeout 10m"; l.Doing != want {
					t.Errorf("it %s, want %s", l.Doing, want)
				}
				return true
			}
		}
		return false
	})
	// A later request is after it, although that one's wait is older than the last slice.
	finish := begin(t, other, "SELECT pg_advisory_xact_lock("+arguments(key)+")")
	pgtest.Eventually(t, "both in the queue", func() bool {
		var order []string
		for _, l := range snapshot(t, db, inspect.Known(key)).Locks {
			if !l.Granted && l.Key == key.String() {
				order = append(order, l.Owner)
			}
		}
		if len(order) == 2 && (order[0] != "billing-7" || order[1] != "") {
			t.Errorf("who waits longest is not first: %q", order)
		}
		return len(order) == 2
	})
	unlock(t, holder, key)
	finish()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
