package words_test

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/inspect/internal/words"
	"github.com/gormlock/gormlock/internal/keynames"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestSay_whatALockIsAskedFor(t *testing.T) {
	t.Parallel()
	a, b := lockkey.Int64(1), lockkey.Pair(2, 3)
	many := []lockkey.Key{lockkey.Int64(1), lockkey.Int64(4), lockkey.Int64(5), lockkey.Int64(6), lockkey.Int64(7)}
	for _, c := range []struct {
		keys      []lockkey.Key
		opts      []advisory.Option
		runs, was string
	}{
		{[]lockkey.Key{a}, nil, "takes invoice/42", "asked for invoice/42"},
		{[]lockkey.Key{a}, []advisory.Option{advisory.Timeout(3 * time.Second)}, "takes invoice/42, timeout 3s", "asked for invoice/42, timeout 3s"},
		{[]lockkey.Key{b}, []advisory.Option{advisory.Try()}, "tries pair(2,3)", "asked for pair(2,3), without waiting"},
		{[]lockkey.Key{a}, []advisory.Option{advisory.Shared()}, "takes invoice/42 (shared)", "asked for invoice/42 (shared)"},
		{[]lockkey.Key{b, a}, []advisory.Option{advisory.Timeout(1500 * time.Millisecond)}, "takes invoice/42, pair(2,3), timeout 1.5s", "asked for invoice/42, pair(2,3), timeout 1.5s"},
		{[]lockkey.Key{a}, []advisory.Option{advisory.Timeout(10 * time.Minute)}, "takes invoice/42, timeout 10m", "asked for invoice/42, timeout 10m"},
		{[]lockkey.Key{a}, []advisory.Option{advisory.Timeout(2 * time.Hour)}, "takes invoice/42, timeout 2h", "asked for invoice/42, timeout 2h"},
		{many, nil, "takes invoice/42, int64(4), int64(5) and 2 more", "asked for invoice/42, int64(4), int64(5) and 2 more"},
	} {
		r, err := lockrequest.New(c.keys, c.opts...)
		if err != nil {
			t.Fatal(err)
		}
		_, locks := r.Opening(false).Around()
		s, ok := words.Read("BEGIN; " + locks)
		if !ok {
			t.Fatalf("not known: %s", locks)
		}
		if got, want := s.Say(true, named, ""), "begins, "+c.runs; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got, want := s.Say(false, named, ""), "began, "+c.was; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func named(k lockkey.Key) string {
	if id, ok := k.Int64(); ok && id == 1 {
		return "invoice/42"
	}
	return k.String()
}

func TestRead_leavesThePrograms(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"", "SELECT 1", "SELECT pg_advisory_xact_lock(42)", "SELECT * FROM gormlock_lease", "BEGIN", "COMMIT",
		`UPDATE "reports" SET "body"=$1,"fence"=$2 WHERE "id" = $3 AND NOT EXISTS (SELECT 1 FROM gormlock_fence WHERE space=1)`,
		`UPDATE "jobs" SET "state"=$1 WHERE "id" IN (SELECT "jobs"."id" AS "key1" FROM "jobs" FOR UPDATE SKIP LOCKED)`,
		"SAVEPOINT sp1", "SAVEPOINT gormlock; UPDATE a SET b = 1",
	} {
		if s, ok := words.Read(query); ok {
			t.Errorf("%s is said to be: %s", query, s.Say(true, named, ""))
		}
	}
}

// recorded keeps the texts that pass through a proxy.
type recorded struct {
	mu    sync.Mutex
	texts map[string]bool
}

func record(proxy *wiretap.Proxy) *recorded {
	r := &recorded{texts: map[string]bool{}}
	proxy.OnQuery(func(sql string) wiretap.Action {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.texts[sql] = true
		return wiretap.Pass
	})
	return r
}

func (r *recorded) sorted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.texts))
}

type document struct {
	ID   int64
	Body string
}

// placed has a key of two columns, in a table with an odd name.
type placed struct {
	Row  int64 `gorm:"primaryKey"`
	Seat int64 `gorm:"primaryKey"`
	Body string
}

func (placed) TableName() string { return "Odd places" }

// TestRead_knowsAllThatGormlockSends: it fails for a new or changed statement that has no words yet.
func TestRead_knowsAllThatGormlockSends(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	proxy, through := pgtest.Tap(t, dsn)
	pool := pgtest.SQLDB(t, pgtest.Through(dsn))
	direct := pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Through(dsn))
	must(t, direct.AutoMigrate(&document{}), direct.AutoMigrate(&placed{}), gormlock.MigrateOnce(direct), lease.Migrate(t.Context(), pool), keynames.Migrate(t.Context(), pool))
	must(t, direct.Create(&document{ID: 1}).Error)

	r := record(proxy)
	lockInTransactions(t, pgtest.Open(t, pgtest.Plugin(gormlock.New()), pgtest.Through(through)), pool)
	lockInSessions(t, through)
	lockByLeases(t, through)
	noteNames(t, through, pool)

	// Statements of managers when they open or listen, and those of the table of names.
	others := []string{"LISTEN ", "UNLISTEN ", "SELECT pg_backend_pid()", "SELECT version();\nSELECT pg_backend_pid()", "SELECT pg_catalog.set_config($1, $2, false)",
		"SELECT pg_catalog.pg_try_advisory_", "SELECT pg_catalog.pg_advisory_unlock(", "SELECT c.relpersistence", "EXPLAIN WITH ", "SELECT objsubid"}
	known := map[string]bool{}
	for _, text := range r.sorted() {
		if s, ok := words.Read(text); ok {
			says := s.Say(true, named, "")
			known[says] = true
			// A server shows the first kilobyte of a text, by default.
			shown, ok := words.Read(text[:min(len(text), 1023)])
			if !ok || shown.Say(true, named, "") != says {
				t.Errorf("of the first kilobyte is said %q, of all %q: %s", shown.Say(true, named, ""), says, text)
			}
			continue
		}
		ours := strings.Contains(text, "gormlock") || strings.Contains(text, "advisory") || strings.Contains(text, "lock_timeout")
		programs := strings.Contains(text, `"documents"`)
		if ours && !programs && !slices.ContainsFunc(others, func(begin string) bool { return strings.HasPrefix(text, begin) }) {
			t.Errorf("not put into words: %s", text)
		}
	}
	for _, want := range []string{
		"begins, takes invoice/42, timeout 1s", "takes invoice/42", "tries pair(2,3)", "sets the timeout of a row lock", "has its row lock",
		"goes back to before a lock it did not get", "asks whether a request was done before (Once)", "issues a fencing token", "issues fencing tokens",
		"checks a fencing token", "tries session locks", "takes a session lock", "releases session locks", "tries a session lock", "releases a session lock", "acquires a lease", "releases a lease", "renews leases",
		"asks who holds a lease", "acquires a slot of a lease", "looks how far a schedule has come", "begins a tick of a schedule",
		"ends a tick of a schedule", "writes names of keys", "claims rows of documents", "claims rows of Odd places", "looks whether rows can be locked",
	} {
		if !known[want] {
			t.Errorf("no statement %q among %q", want, slices.Sorted(maps.Keys(known)))
		}
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func lockInTransactions(t *testing.T, db *gorm.DB, pool *sql.DB) {
	t.Helper()
	a, b := lockkey.Int64(1), lockkey.Pair(2, 3)
	must(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
		token, err := gormlock.FenceFor(tx, lockkey.Of("document"))
		must(t, err, gormlock.FenceTx(tx, token))
		must(t, gormlock.AcquireXactLock(tx, []lockkey.Key{a}), gormlock.AcquireXactLock(tx, []lockkey.Key{b}, gormlock.Try()))
		_, err = gormlock.Once(tx, "first", func(*gorm.DB) (int, error) { return 1, nil })
		_, again := gormlock.Once(tx, "first", func(*gorm.DB) (int, error) { return 2, nil })
		must(t, err, again)
		for _, limit := range []int{1, 30} {
			_, err := gormlock.Claim[document](tx.Where("body <> 'claimed'"), limit, map[string]any{"body": "claimed"})
			_, ofTwo := gormlock.Claim[placed](tx, limit, map[string]any{"body": "claimed"})
			must(t, err, ofTwo)
		}
		return gormlock.LockRow(tx, &document{ID: 1}, gormlock.Timeout(time.Second))
	}, gormlock.Locking(a, gormlock.Timeout(time.Second))))
	_, err := gormlock.SweepOnce(db, time.Hour, 10)
	must(t, err)

	rival, err := pool.BeginTx(t.Context(), nil)
	must(t, err)
	_, err = rival.ExecContext(t.Context(), "SELECT FROM documents FOR UPDATE")
	must(t, err)
	err = gormlock.Transaction(db, func(tx *gorm.DB) error {
		return gormlock.LockRow(tx, &document{ID: 1}, gormlock.Timeout(time.Millisecond))
	})
	if !errors.Is(err, gormlock.ErrLockTimeout) {
		t.Errorf("a row that is locked: %v", err)
	}
	must(t, rival.Rollback())
}

func lockInSessions(t *testing.T, dsn string) {
	t.Helper()
	m, err := sessionlock.Open(t.Context(), dsn)
	must(t, err)
	rival, err := sessionlock.Open(t.Context(), dsn)
	must(t, err)
	held, err := m.Acquire(t.Context(), pgtest.Key(t), sessionlock.Fenced())
	must(t, err)
	handedOver := make(chan error, 1)
	go func() {
		l, err := rival.Acquire(context.WithoutCancel(t.Context()), held.Key())
		if err == nil {
			err = l.Release(context.WithoutCancel(t.Context()))
		}
		handedOver <- err
	}()
	pgtest.WaitBlocked(t, held.Key(), 1)
	must(t, held.Release(t.Context()), <-handedOver)
	conn, err := pgtest.SQLDB(t, pgtest.Through(dsn)).Conn(t.Context())
	must(t, err)
	locker := advisory.SessionLocker(pgtest.Key(t))
	must(t, locker.SessionLock(t.Context(), conn), locker.SessionUnlock(t.Context(), conn), conn.Close())
	must(t, m.Close(t.Context()), rival.Close(t.Context()))
}

func lockByLeases(t *testing.T, dsn string) {
	t.Helper()
	m, err := lease.New(t.Context(), pgtest.SQLDB(t, pgtest.Through(dsn)))
	must(t, err)
	l, err := m.Acquire(t.Context(), lockkey.Of("leased"), time.Minute)
	must(t, err, l.Renew(t.Context()))
	_, held, err := m.Holder(t.Context(), l.Key())
	must(t, err)
	if !held {
		t.Error("nobody holds the lease")
	}
	must(t, l.Release(t.Context()))
	again, err := m.Acquire(t.Context(), lockkey.Of("leased"), time.Minute) // a different statement, because the manager has just released the key
	must(t, err, again.Release(t.Context()))

	pool := lockkey.Of("pool")
	slot, err := m.Acquire(t.Context(), pool, time.Minute, lease.Slots(2))
	must(t, err)
	other, err := m.Acquire(t.Context(), pool, time.Minute, lease.Slots(2))
	must(t, err)
	if _, err := m.TryAcquire(t.Context(), pool, time.Minute); !errors.Is(err, lease.ErrNotAcquired) {
		t.Errorf("the whole of a key with slots that are taken: %v", err)
	}
	must(t, slot.Release(t.Context()), other.Release(t.Context()))
	whole, err := m.Acquire(t.Context(), pool, time.Minute)
	must(t, err, whole.Release(t.Context()))

	ctx, stop := context.WithCancel(t.Context())
	err = m.Every(ctx, lockkey.Of("tick"), lease.Interval(100*time.Millisecond), func(context.Context, time.Time) error {
		stop()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a schedule that was ended: %v", err)
	}
	must(t, m.Close(t.Context()))
}

func noteNames(t *testing.T, dsn string, pool *sql.DB) {
	t.Helper()
	key := pgtest.Key(t)
	id, _ := key.Int64()
	if _, err := pgtest.Conn(t).Exec(t.Context(), "SELECT pg_advisory_lock($1)", id); err != nil {
		t.Fatal(err)
	}
	names := keynames.New(pgtest.SQLDB(t, pgtest.Through(dsn)), func(err error) { t.Error(err) })
	defer names.Close()
	names.Note(keynames.ID{Space: 1, ID: id}, keynames.Session, key)
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
		var written int
		must(t, pool.QueryRowContext(t.Context(), "SELECT count(*) FROM gormlock_key_name").Scan(&written))
		if written > 0 {
			return
		}
	}
	t.Error("the name was not written")
}
