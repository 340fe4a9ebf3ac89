package lease_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// bound is how long a wait for something that will happen may take on a slow machine.
const bound = 30 * time.Second

func TestMain(m *testing.M) {
	pgtest.MoreAtOnce(8) // tests here mostly wait, and compute little
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
	return openUnder(t.Context(), t, db, opts...)
}

// rivals returns two managers of one database that has the tables, closed at the end of the test.
func rivals(t testing.TB) (a, b *lease.Manager) {
	t.Helper()
	db := tables(t)
	return open(t, db), open(t, db)
}

func openUnder(ctx context.Context, t testing.TB, db *sql.DB, opts ...lease.Option) *lease.Manager {
	t.Helper()
	m, err := lease.New(ctx, db, opts...)
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

// tryAcquire acquires what nobody holds.
func tryAcquire(t testing.TB, m *lease.Manager, k lockkey.Key) *lease.Lease {
	t.Helper()
	l, err := m.TryAcquire(t.Context(), k, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// acquiring acquires in the background.
func acquiring(t testing.TB, m *lease.Manager, k lockkey.Key, ttl time.Duration, opts ...lease.AcquireOption) <-chan *lease.Lease {
	got := make(chan *lease.Lease)
	go func() {
		l, err := m.Acquire(t.Context(), k, ttl, opts...)
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	return got
}

// stillWaits fails the test if an acquisition in the background is granted within d.
func stillWaits(t testing.TB, got <-chan *lease.Lease, d time.Duration, granted string) {
	t.Helper()
	select {
	case <-got:
		t.Fatal(granted)
	case <-time.After(d):
	}
}

// idle is work that does nothing.
func idle(context.Context) error { return nil }

func release(t testing.TB, l *lease.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
