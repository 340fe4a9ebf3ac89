package lease_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/torture"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// bound is how long a wait for something that will happen may take on a slow machine.
const bound = 30 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(torture.WorkerDSN) != "" {
		if err := torture.Work(fight); err != nil {
			fmt.Fprintln(os.Stderr, "process of a test:", err)
			os.Exit(1)
		}
		return
	}
	// Tests here wait for leases to run out, more than they compute.
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set("8")
	}
	pgtest.Main(m)
}

// tables returns a pool in a schema of its own that has the tables.
func tables(t testing.TB, opts ...pgtest.Option) *sql.DB {
	t.Helper()
	db := pgtest.SQLDB(t, append([]pgtest.Option{pgtest.Schema()}, opts...)...)
	if err := lease.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return db
}

// open returns a manager, closed at the end of the test.
func open(t testing.TB, db *sql.DB, opts ...lease.Option) *lease.Manager {
	t.Helper()
	m, err := lease.New(t.Context(), db, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return m
}

func acquire(t testing.TB, m *lease.Manager, k lockkey.Key, ttl time.Duration, opts ...lease.AcquireOption) *lease.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	l, err := m.Acquire(ctx, k, ttl, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func release(t testing.TB, l *lease.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
