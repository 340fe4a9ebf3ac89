package lease_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// If a manager takes a key again that it released, it asks once, with the cheapest statement, and gets the next token.
func TestFreed_oneRoundTripEach(t *testing.T) {
	t.Parallel()
	proxy, m, _ := tapped(t)
	k := lockkey.Of("report")
	var last int64
	var mu sync.Mutex
	var texts []string
	proxy.OnQuery(func(sql string) wiretap.Action {
		mu.Lock()
		defer mu.Unlock()
		if isAcquire(sql) {
			texts = append(texts, sql)
		}
		return wiretap.Pass
	})
	for n := range 4 {
		if n == 3 {
			proxy.Reset()
		}
		l := acquire(t, m, k, time.Minute)
		if l.Token().Number != last+1 && n > 0 {
			t.Errorf("token %d after %d", l.Token().Number, last)
		}
		last = l.Token().Number
		release(t, l)
	}
	if n := proxy.RoundTrips(); n != 2 {
		t.Errorf("%d round trips for one lease", n)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(texts) != 4 || !strings.HasPrefix(texts[0], "WITH taken") || !strings.HasPrefix(texts[3], "WITH mine") {
		t.Errorf("%q", texts)
	}
}

// If another process took the key meanwhile, the request is refused with that owner, and what that process stored is not taken over.
func TestFreed_takenMeanwhile(t *testing.T) {
	t.Parallel()
	db := tables(t)
	m, rival := open(t, db), open(t, db, lease.Owner("the rival"))
	k := lockkey.Of("report")
	for range 3 {
		release(t, acquire(t, m, k, time.Minute))
		theirs, err := rival.Acquire(t.Context(), k, time.Minute, lease.Data([]byte("theirs")))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.TryAcquire(t.Context(), k, time.Minute); !errors.Is(err, lease.ErrNotAcquired) || !strings.Contains(err.Error(), "the rival") {
			t.Errorf("%v", err)
		}
		release(t, theirs)
		ours := acquire(t, m, k, time.Minute) // with the full statement
		if ours.Token().Number != theirs.Token().Number+1 {
			t.Errorf("token %d after %d", ours.Token().Number, theirs.Token().Number)
		}
		release(t, ours)
		ours = acquire(t, m, k, time.Minute)
		if h, held, err := m.Holder(t.Context(), k); err != nil || !held || h.Data != nil {
			t.Errorf("%+v, %t, %v", h, held, err)
		}
		release(t, ours)
	}
}

// The full statement is used if a row is missing, and with slots, AtLeast or data.
func TestFreed_inFull(t *testing.T) {
	t.Parallel()
	db := tables(t)
	m := open(t, db)
	k := lockkey.Of("report")
	for _, text := range []string{"DELETE FROM gormlock_lease", "DELETE FROM gormlock_fence"} {
		release(t, acquire(t, m, k, time.Minute))
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
		l := acquire(t, m, k, time.Minute)
		if l.Token().IsZero() {
			t.Errorf("after %s: no token", text)
		}
		release(t, l)
	}
	l, err := m.Acquire(t.Context(), k, time.Minute, lease.Data([]byte("data")))
	if err != nil {
		t.Fatal(err)
	}
	if h, _, err := m.Holder(t.Context(), k); err != nil || string(h.Data) != "data" {
		t.Errorf("%+v, %v", h, err)
	}
	release(t, l)
	l, err = m.Acquire(t.Context(), k, time.Minute, lease.AtLeast(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	release(t, l)
	if _, err := m.TryAcquire(t.Context(), k, time.Minute); !errors.Is(err, lease.ErrNotAcquired) {
		t.Errorf("released, and not free yet: %v", err)
	}
}

// Even with synchronous_commit off, the token waits for its commit.
func TestFreed_isDurable(t *testing.T) {
	t.Parallel()
	db := tables(t, pgtest.Param("synchronous_commit", "off"), pgtest.MaxConns(1))
	if _, err := db.ExecContext(t.Context(), `CREATE FUNCTION said() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO settings_seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$`); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"CREATE TABLE settings_seen (setting text)",
		"CREATE CONSTRAINT TRIGGER said AFTER UPDATE ON gormlock_fence DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION said()",
	} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	m := open(t, db)
	for range 3 {
		release(t, acquire(t, m, lockkey.Of("report"), time.Minute))
	}
	var all, on int
	if err := db.QueryRowContext(t.Context(), "SELECT count(*), count(*) FILTER (WHERE setting = 'on') FROM settings_seen").Scan(&all, &on); err != nil || all < 2 || on != all {
		t.Errorf("%d of %d commits were waited for, %v", on, all, err)
	}
	assertNothingSet(t, db)
}

// A release does not wait for the disk, an acquisition does.
func TestRelease_doesNotWaitForTheDisk(t *testing.T) {
	t.Parallel()
	db := tables(t, pgtest.MaxConns(12))
	m := open(t, db)
	for _, text := range []string{
		"CREATE TABLE settings_seen (holder text, setting text)",
		`CREATE FUNCTION saw() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			INSERT INTO settings_seen VALUES (NEW.holder, current_setting('synchronous_commit')); RETURN NEW; END $$`,
		"CREATE CONSTRAINT TRIGGER saw AFTER UPDATE ON gormlock_lease DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION saw()",
	} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for i := range 40 { // alone, and many in one statement
		all.Go(func() {
			for range 20 {
				release(t, acquire(t, m, lockkey.Of("report", i), time.Minute))
			}
		})
	}
	all.Wait()
	var taken, waited, released, left int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FILTER (WHERE holder <> ''), count(*) FILTER (WHERE holder <> '' AND setting = 'on'),
		count(*) FILTER (WHERE holder = ''), count(*) FILTER (WHERE holder = '' AND setting = 'off') FROM settings_seen`).Scan(&taken, &waited, &released, &left); err != nil {
		t.Fatal(err)
	}
	if taken == 0 || waited != taken || released != 800 || left < released*9/10 {
		t.Errorf("%d of %d acquisitions waited, and %d of %d releases did not", waited, taken, left, released)
	}
}
