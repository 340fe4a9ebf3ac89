package main_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// The content of gormlock's tables is shown: names, tokens, owners and leases.
func TestList_showsNamesTokensOwnersAndLeases(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	db, leases := leasesOf(t, dsn, "worker\x1b[31m-3")
	if err := inspect.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	locks, err := sessionlock.Open(t.Context(), dsn, sessionlock.Owner("billing-7"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locks.Close(t.Context()) }()
	fenced, err := locks.Acquire(t.Context(), lockkey.Of("billing", "nightly"), sessionlock.Fenced())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leases.Acquire(t.Context(), lockkey.Of("report", "daily"), time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := leases.Acquire(t.Context(), lockkey.Of("pool"), time.Hour, lease.Slots(3)); err != nil {
		t.Fatal(err)
	}
	p := join(t, dsn, "psql")
	p.exec(`INSERT INTO gormlock_key_name VALUES (2, (7::bigint << 32) + 42, '<script>', 'session', now())`, "SELECT pg_advisory_lock(7, 42)")

	r := on(t, dsn, "ls")
	r.is(t, 0, "billing/nightly", fmt.Sprint(fenced.Token().Number), "gormlock billing-7", "<script>", "LEASE", "report/daily", "expires in 59m")
	if strings.Contains(r.out, "\x1b") {
		t.Errorf("an owner paints the terminal: %q", r.out)
	}
	on(t, dsn, "ls", "--app", "billing-7").is(t, 0, "billing/nightly", ": 1 shown")
	on(t, dsn, "ls", "--key", "pool").is(t, 0, "pool slot 0", "expires in 59m")
	on(t, dsn, "ls", "--key", "report/*").is(t, 0, "report/daily", ": 0 shown")
	if r := on(t, dsn, "ls", "--key", "billing/*"); strings.Contains(r.out, "report/daily") || !strings.Contains(r.out, "billing/nightly") {
		t.Errorf("got %s", r.out)
	}
	on(t, dsn, "ls", "--json").is(t, 0, `"name": "billing/nightly"`, `"owner": "billing-7"`)
	on(t, dsn, "why", p.arg()).is(t, 0, "waits for no lock")
	if err := fenced.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
