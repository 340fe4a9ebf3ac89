package lease_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
)

func TestObserver_isToldWhatHappens(t *testing.T) {
	t.Parallel()
	db := tables(t)
	w := &pgtest.Hearer{}
	m := open(t, db, lease.Observer(w), lease.Owner("billing-7"))
	k := lockkey.Of("report", 1)
	l := acquire(t, m, k, time.Minute)
	if _, err := m.TryAcquire(t.Context(), k, time.Minute); !errors.Is(err, lease.ErrNotAcquired) {
		t.Fatal(err)
	}
	if _, err := m.Acquire(t.Context(), k, time.Minute, lease.Timeout(20*time.Millisecond)); !errors.Is(err, lease.ErrLockTimeout) {
		t.Fatal(err)
	}
	release(t, l)
	lost := acquire(t, m, k, 200*time.Millisecond, lease.NoRenewal())
	pgtest.Await(t, "Lost", lost.Lost())
	events := w.Heard(t, observe.Acquired, observe.NotAcquired, observe.TimedOut, observe.Released, observe.Acquired, observe.Lost)
	for _, e := range events {
		if e.Source != "lease" || e.Key != "report/1" || e.Owner != "billing-7" || e.Table != "gormlock_lease" || e.Mode != "exclusive" {
			t.Errorf("%+v", e)
		}
		switch e.Kind {
		case observe.Acquired, observe.Released, observe.Lost:
			if e.Token == 0 {
				t.Errorf("%s without its token", e.Kind)
			}
		default:
		}
	}
	if e := events[5]; e.Held < 100*time.Millisecond || !errors.Is(e.Err, lease.ErrLost) {
		t.Errorf("%+v", e)
	}
	if e := events[2]; e.Wait < 20*time.Millisecond {
		t.Errorf("%+v", e)
	}
}

func TestMigrate_manyAtOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.Schema())
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			opts := [][]lease.Option{nil, {lease.ShedLock()}, {lease.Table("other")}}[i%3]
			if err := lease.Migrate(t.Context(), db, opts...); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, opts := range [][]lease.Option{nil, {lease.ShedLock()}, {lease.Table("other")}, {lease.ShedLock(), lease.Table("shedlock")}} {
		release(t, acquire(t, open(t, db, opts...), lockkey.Of("a"), time.Minute))
	}
}

// The DDL for own migrations does the same as Migrate.
func TestSchema_isWhatMigrateDoes(t *testing.T) {
	t.Parallel()
	db := tables(t)
	shape := func() (text string) {
		const look = `SELECT string_agg(format('%s %s %s', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull), ', ' ORDER BY a.attnum) || c.reloptions::text
			FROM pg_class c, pg_attribute a WHERE c.oid = 'gormlock_lease'::regclass AND a.attrelid = c.oid AND a.attnum > 0 GROUP BY c.reloptions`
		if err := db.QueryRowContext(t.Context(), look).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	migrated := shape()
	if _, err := db.ExecContext(t.Context(), "DROP TABLE gormlock_lease"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := db.ExecContext(t.Context(), lease.Schema); err != nil {
			t.Fatal(err)
		}
	}
	if made := shape(); made != migrated {
		t.Errorf("Schema makes %s, Migrate %s", made, migrated)
	}
	if n := strings.Count(fmt.Sprint(lease.Schema), "fillfactor = 50"); n != 1 {
		t.Error("L16: half of each page is for renewals")
	}
}
