package fence_test

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"testing"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// table returns a pool in a schema of its own that has the token table, and what ddl makes.
func table(t testing.TB, ddl ...string) *sql.DB {
	t.Helper()
	db := migrated(t, pgtest.Schema())
	for _, text := range ddl {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func migrated(t testing.TB, of pgtest.Option) *sql.DB {
	t.Helper()
	db := pgtest.SQLDB(t, of)
	if err := fence.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return db
}

func issue(t *testing.T, q fence.Queryer, k lockkey.Key) fence.Token {
	t.Helper()
	tok, err := fence.Issue(t.Context(), q, k)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestMigrate_manyAtOnce(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.Schema())
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if err := fence.Migrate(t.Context(), db); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	issue(t, db, pgtest.Key(t))
}

func TestMigrate_needsNoRightsWhenTheTableIsThere(t *testing.T) {
	t.Parallel()
	db := table(t)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, statement := range []string{
		"DO $$ BEGIN CREATE ROLE fence_reader; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$",
		"DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO fence_reader', current_schema()); END $$",
		"SET ROLE fence_reader",
	} {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := fence.Migrate(t.Context(), conn); err != nil {
		t.Error(err)
	}
	_, err = conn.ExecContext(t.Context(), "RESET ROLE; DO $$ BEGIN EXECUTE format('DROP OWNED BY fence_reader'); END $$")
	if err != nil {
		t.Error(err)
	}
}

func TestIssue_missingTableNamesTheCure(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.Schema())
	_, err := fence.Issue(t.Context(), db, lockkey.Of("report"))
	if err == nil || !strings.Contains(err.Error(), "fence.Migrate") || !strings.Contains(err.Error(), "fencing token for report") {
		t.Errorf("got %v", err)
	}
}

func TestIssue_growsByKey(t *testing.T) {
	t.Parallel()
	db := table(t)
	a, b := lockkey.Of("a"), lockkey.Pair(1, 2)
	first := issue(t, db, a)
	if first.Number != 1<<40+1 {
		t.Errorf("the first token of timeline 1 is %d", first.Number)
	}
	if second := issue(t, db, a); second.Number != first.Number+1 || !second.SameKey(first) {
		t.Errorf("after %v came %v", first, second)
	}
	if other := issue(t, db, b); other.Number != first.Number {
		t.Errorf("another key began at %v", other)
	}
}

func TestIssue_neverTwice(t *testing.T) {
	t.Parallel()
	db := table(t)
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				tok, err := fence.Issue(t.Context(), db, lockkey.Of("a"))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if seen[tok.Number] {
					t.Errorf("%v was issued twice", tok)
				}
				seen[tok.Number] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// lastOf returns the last of n tokens of a.
func lastOf(t *testing.T, n int, db *sql.DB) (last fence.Token) {
	t.Helper()
	for range n {
		last = issue(t, db, lockkey.Of("a"))
	}
	return last
}

// afterCrash crashes a server, and does what makes one available again.
func afterCrash(t *testing.T, of *pgserver.Server, then func(context.Context) error) {
	t.Helper()
	if err := of.Crash(); err != nil {
		t.Fatal(err)
	}
	if err := then(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// P24: a token that was seen is durable although the session does not wait for its commits.
func TestIssue_survivesACrash(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t, pgserver.Setting("synchronous_commit", "off"), pgserver.Setting("wal_writer_delay", "10s"))
	db := migrated(t, pgtest.Through(server.DSN("postgres")))
	before := lastOf(t, 20, db)
	afterCrash(t, server, server.Restart)
	again := pgtest.SQLDB(t, pgtest.Through(server.DSN("postgres")))
	if after := issue(t, again, lockkey.Of("a")); after.Number <= before.Number {
		t.Errorf("after the crash %v, before it %v", after, before)
	}
}

// L11: a standby promoted without the last tokens of its primary repeats none.
func TestIssue_promotedStandbyRepeatsNothing(t *testing.T) {
	t.Parallel()
	primary := pgtest.Fresh(t)
	db := migrated(t, pgtest.Through(primary.DSN("postgres")))
	issue(t, db, lockkey.Of("a"))
	standby := pgtest.Standby(t, primary)
	replica := pgtest.SQLDB(t, pgtest.Through(standby.DSN("postgres")), pgtest.MaxConns(1))
	if _, err := replica.ExecContext(t.Context(), "SELECT pg_wal_replay_pause()"); err != nil {
		t.Fatal(err)
	}
	last := lastOf(t, 8, db)
	afterCrash(t, primary, standby.Promote)
	promoted := pgtest.SQLDB(t, pgtest.Through(standby.DSN("postgres")))
	after := issue(t, promoted, lockkey.Of("a"))
	if after.Number <= last.Number || after.Number>>40 != 2 {
		t.Errorf("the promoted standby issued %v after %v", after, last)
	}
}

func TestIssue_inATransactionThatRollsBackIsNotIssued(t *testing.T) {
	t.Parallel()
	db := table(t)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	inside := issue(t, tx, lockkey.Of("a"))
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n, err := fence.Latest(t.Context(), db, inside); n != 0 || err != nil {
		t.Errorf("latest is %d, %v", n, err)
	}
}

// Latest makes a later token wait until the transaction has ended.
func TestLatest_holdsBackLaterTokens(t *testing.T) {
	t.Parallel()
	db := table(t)
	mine := issue(t, db, lockkey.Of("a"))
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if n, err := fence.Latest(t.Context(), tx, mine); n != mine.Number || err != nil {
		t.Fatalf("latest is %d, %v", n, err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var pid int
	if err := conn.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	later := make(chan fence.Token, 1)
	go func() {
		tok, err := fence.Issue(context.WithoutCancel(t.Context()), conn, lockkey.Of("a"))
		if err != nil {
			t.Error(err)
		}
		later <- tok
	}()
	pgtest.WaitBackendBlocked(t, pid)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if tok := <-later; tok.Number != mine.Number+1 {
		t.Errorf("after %v came %v", mine, tok)
	}
}
