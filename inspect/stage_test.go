package inspect_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

func snapshot(t *testing.T, db *sql.DB, opts ...inspect.Option) *inspect.View {
	t.Helper()
	v, err := inspect.Snapshot(t.Context(), db, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// locksOf are the locks and requests of a session.
func locksOf(v *inspect.View, c *pgx.Conn) (held, waiting []*inspect.Lock) {
	for i := range v.Locks {
		switch l := &v.Locks[i]; {
		case l.PID != pid(c):
		case l.Granted:
			held = append(held, l)
		default:
			waiting = append(waiting, l)
		}
	}
	return held, waiting
}

// waitOf is the only waiting request of a session.
func waitOf(t *testing.T, v *inspect.View, c *pgx.Conn) *inspect.Lock {
	t.Helper()
	_, waiting := locksOf(v, c)
	if len(waiting) != 1 {
		t.Fatalf("session %d waits for %d things in %+v", pid(c), len(waiting), v.Locks)
	}
	return waiting[0]
}

func run(t *testing.T, c *pgx.Conn, text string, args ...any) {
	t.Helper()
	if _, err := c.Exec(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// begin starts a statement that must wait for a lock, and returns when it waits. Call finish when nothing blocks it any more.
func begin(t *testing.T, c *pgx.Conn, text string, args ...any) (finish func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := c.Exec(context.WithoutCancel(t.Context()), text, args...)
		done <- err
	}()
	pgtest.WaitBackendBlocked(t, pid(c))
	return func() {
		t.Helper()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// accounts makes a table with two rows in a schema of the test.
func accounts(t *testing.T, c *pgx.Conn) (table string) {
	t.Helper()
	if err := c.QueryRow(t.Context(), "SELECT current_schema() || '.accounts'").Scan(&table); err != nil {
		t.Fatal(err)
	}
	run(t, c, "CREATE TABLE accounts (id int PRIMARY KEY, balance int)")
	run(t, c, "INSERT INTO accounts VALUES (1, 0), (2, 0)")
	return table
}

func pid(c *pgx.Conn) int { return int(c.PgConn().PID()) }

func lock(t *testing.T, c *pgx.Conn, key lockkey.Key) {
	t.Helper()
	run(t, c, "SELECT pg_advisory_lock("+arguments(key)+")")
}

func unlock(t *testing.T, c *pgx.Conn, key lockkey.Key) {
	t.Helper()
	run(t, c, "SELECT pg_advisory_unlock("+arguments(key)+")")
}

func arguments(key lockkey.Key) string {
	if hi, lo, ok := key.Pair(); ok {
		return fmt.Sprintf("%d, %d", hi, lo)
	}
	id, _ := key.Int64()
	return fmt.Sprint(id)
}
