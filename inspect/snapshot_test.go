package inspect_test

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

func TestSnapshot_showsHolderAndWaiter(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t)
	key := pgtest.Key(t)
	holder, waiter := pgtest.Conn(t), pgtest.Conn(t)
	lock(t, holder, key)
	wait := background(t, waiter, key)
	pgtest.WaitBlocked(t, key, 1)

	v, err := inspect.Snapshot(t.Context(), db, inspect.Known(key))
	if err != nil {
		t.Fatal(err)
	}
	var held, waits *inspect.Lock
	for i := range v.Locks {
		if l := &v.Locks[i]; l.Name == key.Name() {
			if l.Granted {
				held = l
			} else {
				waits = l
			}
		}
	}
	if held == nil || waits == nil {
		t.Fatalf("held %v, waiting %v in %+v", held, waits, v.Locks)
	}
	if held.PID != pid(holder) || held.Scope != inspect.SessionScope || held.Waiters != 1 || held.Mode != "exclusive" {
		t.Errorf("held: %+v %+v", held, held.Session)
	}
	if waits.PID != pid(waiter) || !slices.Equal(waits.Blockers, []int{pid(holder)}) || waits.Since.IsZero() || waits.Earliest {
		t.Errorf("waiting: %+v %+v", waits, waits.Session)
	}
	unlock(t, holder, key)
	wait()
}

func pid(c *pgx.Conn) int { return int(c.PgConn().PID()) }

func lock(t *testing.T, c *pgx.Conn, key lockkey.Key) {
	t.Helper()
	id, _ := key.Int64()
	if _, err := c.Exec(t.Context(), "SELECT pg_advisory_lock($1)", id); err != nil {
		t.Fatal(err)
	}
}

func unlock(t *testing.T, c *pgx.Conn, key lockkey.Key) {
	t.Helper()
	id, _ := key.Int64()
	if _, err := c.Exec(t.Context(), "SELECT pg_advisory_unlock($1)", id); err != nil {
		t.Fatal(err)
	}
}

// background takes the lock in a transaction of its own; the result waits for the end of it.
func background(t *testing.T, c *pgx.Conn, key lockkey.Key) (wait func()) {
	t.Helper()
	id, _ := key.Int64()
	done := make(chan error, 1)
	go func() {
		_, err := c.Exec(context.WithoutCancel(t.Context()), "SELECT pg_advisory_xact_lock($1)", id)
		done <- err
	}()
	return func() {
		t.Helper()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}
