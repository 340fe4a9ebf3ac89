package keynames_test

import (
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/keynames"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t *testing.T) (*sql.DB, *keynames.Recorder) {
	t.Helper()
	db := pgtest.SQLDB(t, pgtest.Schema())
	if err := keynames.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	r := keynames.New(db, func(err error) { t.Error(err) })
	t.Cleanup(r.Close)
	return db, r
}

// hold takes the lock on a connection of its own.
func hold(t *testing.T, key lockkey.Key) keynames.ID {
	t.Helper()
	id, _ := key.Int64()
	if _, err := pgtest.Conn(t).Exec(t.Context(), "SELECT pg_advisory_lock($1)", id); err != nil {
		t.Fatal(err)
	}
	return keynames.ID{Space: 1, ID: id}
}

func names(t *testing.T, db *sql.DB) map[int64]string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT id, name FROM gormlock_key_name")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[int64]string{}
	for rows.Next() {
		var id int64
		var name string
		if err := rows.Scan(&id, &name); err != nil {
			t.Fatal(err)
		}
		all[id] = name
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not: " + what)
		}
	}
}

// L18. Names that were not needed for a day are deleted, unless the lock is still held.
func TestRecorder_sweeps(t *testing.T) {
	t.Parallel()
	db, r := open(t)
	held, old := pgtest.Key(t, "held"), pgtest.Key(t, "old")
	heldID, oldID := hold(t, held), hold(t, old)
	if _, err := db.ExecContext(t.Context(), `INSERT INTO gormlock_key_name SELECT 1, n, 'gone', 'session', now() - interval '2 days' FROM generate_series(1, 500) n
		UNION ALL SELECT 1, $1::int8, 'old and locked', 'session', now() - interval '2 days' UNION ALL SELECT 1, 501, 'of today', 'session', now()`, oldID.ID); err != nil {
		t.Fatal(err)
	}
	r.Note(heldID, keynames.Session, held)
	eventually(t, "the old names are gone", func() bool { return len(names(t, db)) == 3 })
	got := names(t, db)
	if got[heldID.ID] != held.String() || got[oldID.ID] != "old and locked" || got[501] != "of today" {
		t.Errorf("left are %q", got)
	}
}

// Many programs with one hot key write one row, once, and do not block each other.
func TestRecorder_besideOthers(t *testing.T) {
	t.Parallel()
	db, first := open(t)
	key := pgtest.Key(t)
	id := hold(t, key)
	first.Note(id, keynames.Session, key)
	var all sync.WaitGroup
	for range 5 {
		r := keynames.New(db, func(err error) { t.Error(err) })
		t.Cleanup(r.Close)
		all.Go(func() {
			for range 100 {
				r.Note(id, keynames.Session, key)
			}
		})
	}
	all.Wait()
	eventually(t, "the name is written", func() bool { return names(t, db)[id.ID] == key.String() })
}

// A key that is noted while the server cannot be reached gets its name later.
func TestRecorder_goesOnAfterFailures(t *testing.T) {
	t.Parallel()
	proxy, dsn := pgtest.Tap(t, pgtest.DSN(t))
	db := pgtest.SQLDB(t, pgtest.Schema())
	if err := keynames.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	failures := 0
	r := keynames.New(pgtest.SQLDB(t, pgtest.Through(dsn), pgtest.Schema()), func(error) {
		mu.Lock()
		defer mu.Unlock()
		failures++
	})
	t.Cleanup(r.Close)
	key := pgtest.Key(t)
	id := hold(t, key)
	proxy.Refuse()
	r.Note(id, keynames.Session, key)
	eventually(t, "the failure is reported", func() bool { mu.Lock(); defer mu.Unlock(); return failures > 0 })
	proxy.Admit()
	eventually(t, "the name is written", func() bool { return names(t, db)[id.ID] == key.String() })
	mu.Lock()
	defer mu.Unlock()
	if failures != 1 {
		t.Errorf("%d failures reported, want the first of the row", failures)
	}
}
