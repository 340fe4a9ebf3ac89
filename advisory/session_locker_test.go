package advisory_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

func session(t *testing.T, db *sql.DB) *sql.Conn {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestSessionLocker_oneSessionAtATime(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t)
	hi, lo, _ := lockkey.Pair(-int32(time.Now().UnixNano()), 7).Pair()
	for _, k := range []lockkey.Key{pgtest.Key(t, "migrate"), lockkey.Pair(hi, lo)} {
		l := advisory.SessionLocker(k)
		a, b := session(t, db), session(t, db)
		if err := l.SessionLock(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if err := l.SessionLock(t.Context(), a); !errors.Is(err, advisory.ErrHeld) {
			t.Errorf("%s: a second time: %v", k, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := l.SessionLock(ctx, b)
		cancel()
		if !errors.Is(err, advisory.ErrNotAcquired) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: the other: %v", k, err)
		}
		if err := l.SessionUnlock(t.Context(), b); !errors.Is(err, advisory.ErrNotHeld) {
			t.Errorf("%s: to unlock what is not held: %v", k, err)
		}
		got := make(chan error)
		go func() { got <- l.SessionLock(t.Context(), b) }()
		select {
		case err := <-got:
			t.Fatalf("%s: two hold it: %v", k, err)
		case <-time.After(50 * time.Millisecond):
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if err := l.SessionUnlock(ended, a); err != nil {
			t.Errorf("%s: with a ctx that has ended: %v", k, err)
		}
		if err := <-got; err != nil {
			t.Errorf("%s: the next: %v", k, err)
		}
		if err := l.SessionUnlock(t.Context(), a); !errors.Is(err, advisory.ErrNotHeld) {
			t.Errorf("%s: unlocked twice: %v", k, err)
		}
		if err := l.SessionUnlock(t.Context(), b); err != nil {
			t.Error(err)
		}
	}
	if err := advisory.SessionLocker(lockkey.Key{}).SessionLock(t.Context(), session(t, db)); !errors.Is(err, lockkey.ErrInvalid) {
		t.Errorf("no key: %v", err)
	}
}

// P15: who waits holds no snapshot, so the holder's CREATE INDEX CONCURRENTLY goes on.
func TestSessionLocker_indexesAreBuiltWhileOthersWait(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.Schema())
	l := advisory.SessionLocker(pgtest.Key(t, "migrate"))
	a, b := session(t, db), session(t, db)
	if err := l.SessionLock(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() { got <- l.SessionLock(t.Context(), b) }()
	for _, statement := range []string{"CREATE TABLE docs (id int)", "CREATE INDEX CONCURRENTLY docs_id ON docs (id)"} {
		if _, err := a.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.SessionUnlock(t.Context(), a); err != nil {
		t.Error(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	if err := l.SessionUnlock(t.Context(), b); err != nil {
		t.Error(err)
	}
}

// An answer that gets lost leaves no session behind that holds the lock and goes back to its pool.
func TestSessionLocker_closesTheConnectionInDoubt(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	proxy, through := pgtest.Tap(t, dsn)
	l := advisory.SessionLocker(pgtest.Key(t, "migrate"))
	conn := session(t, pgtest.SQLDB(t, pgtest.Through(through), pgtest.MaxConns(1)))
	if err := l.SessionLock(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	proxy.StallAnswers()
	if err := l.SessionUnlock(t.Context(), conn); err == nil || errors.Is(err, advisory.ErrNotHeld) {
		t.Errorf("no answer is one: %v", err)
	}
	proxy.Resume()
	if err := conn.PingContext(t.Context()); err == nil {
		t.Error("the connection goes on")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	next := session(t, pgtest.SQLDB(t))
	if err := l.SessionLock(ctx, next); err != nil {
		t.Error(err)
	}
	if err := l.SessionUnlock(ctx, next); err != nil {
		t.Error(err)
	}
}

// Behind a pooler the lock would stay with a server connection that others use: nothing is taken.
func TestSessionLocker_behindAPooler(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"session", "transaction", "statement"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			pooler := pgtest.StartPgBouncer(t, pgtest.DSN(t), "pool_mode = "+mode)
			db := pgtest.SQLDB(t, pgtest.Through(pooler.DSN()), pgtest.SimpleProtocol())
			key := pgtest.Key(t, "migrate")
			err := advisory.SessionLocker(key).SessionLock(t.Context(), session(t, db))
			if !errors.Is(err, advisory.ErrPooler) || !strings.Contains(err.Error(), "AllowPooler") {
				t.Errorf("%v", err)
			}
			pgtest.AssertFree(t, key)
			if mode != "session" {
				return
			}
			l := advisory.SessionLocker(key, advisory.AllowPooler())
			a, b := session(t, db), session(t, db)
			if err := l.SessionLock(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := l.SessionLock(soon, b); !errors.Is(err, advisory.ErrNotAcquired) {
				t.Errorf("the other: %v", err)
			}
			if err := l.SessionUnlock(t.Context(), a); err != nil {
				t.Error(err)
			}
		})
	}
}

// What a session lock has no use for is an error, and so is what a lock of a transaction has no use for.
func TestSessionLocker_options(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t)
	for i, o := range []advisory.Option{advisory.Try(), advisory.Timeout(time.Second), advisory.Shared(), advisory.AllowSnapshot(), advisory.AllowServer(""), nil} {
		if err := advisory.SessionLocker(pgtest.Key(t), o).SessionLock(t.Context(), session(t, db)); !errors.Is(err, advisory.ErrOption) {
			t.Errorf("option %d: %v", i, err)
		}
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := advisory.Acquire(t.Context(), tx, []lockkey.Key{pgtest.Key(t)}, advisory.AllowPooler()); !errors.Is(err, advisory.ErrOption) {
		t.Errorf("AllowPooler of a transaction: %v", err)
	}
}
