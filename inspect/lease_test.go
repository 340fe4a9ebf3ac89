package inspect_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// leasesOf makes the tables of leases, and opens a manager of leases with the owner worker-3. It is closed at the end of the test.
func leasesOf(t *testing.T, db *sql.DB) *lease.Manager {
	t.Helper()
	if err := lease.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	leases, err := lease.New(t.Context(), db, lease.Owner("worker-3"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := leases.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return leases
}

// For a key with slots, the slots are shown, each with its own token, and not the row that counts them.
func TestSnapshot_showsSlots(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.Schema())
	leases := leasesOf(t, db)
	pool := lockkey.Of("pool")
	for range 2 {
		if _, err := leases.Acquire(t.Context(), pool, time.Minute, lease.Slots(3)); err != nil {
			t.Fatal(err)
		}
	}
	v := snapshot(t, db)
	if len(v.Leases) != 2 || v.Totals.Leases != 2 {
		t.Fatalf("want two slots: %+v", v.Leases)
	}
	for i, l := range v.Leases {
		if l.Key != []string{"pool slot 0", "pool slot 1"}[i] || l.Owner != "worker-3" || l.Token == 0 || l.Expires.Sub(v.Taken) > time.Minute {
			t.Errorf("%+v", l)
		}
	}
}

// A known renamed key names both of its locks.
func TestKnown_ofARenamedKey(t *testing.T) {
	t.Parallel()
	now, before := pgtest.Key(t, "new"), pgtest.Key(t, "old")
	holder := pgtest.Conn(t)
	lock(t, holder, now)
	lock(t, holder, before)
	held, _ := locksOf(snapshot(t, pgtest.SQLDB(t), inspect.Known(lockkey.Renamed(now, before))), holder)
	names := map[string]bool{}
	for _, l := range held {
		names[l.Key] = true
	}
	if len(held) != 2 || !names[now.String()] || !names[before.String()] {
		t.Errorf("want %s and %s: %v", now, before, names)
	}
	unlock(t, holder, now)
	unlock(t, holder, before)
}
