package sessionlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// migrate makes the token table in the test's own schema and returns its address.
func migrate(t testing.TB) string {
	t.Helper()
	if err := fence.Migrate(t.Context(), pgtest.SQLDB(t, pgtest.Schema())); err != nil {
		t.Fatal(err)
	}
	return pgtest.SchemaDSN(t)
}

func TestFenced_everyHolderGetsALaterToken(t *testing.T) {
	t.Parallel()
	dsn := migrate(t)
	managers := []*sessionlock.Manager{openAt(t, dsn), openAt(t, dsn)}
	k, other := pgtest.Key(t), pgtest.Key(t, "other")
	var last int64
	for i := range 6 {
		l := acquire(t, managers[i%2], k, sessionlock.Fenced())
		if l.Token().Number <= last || l.Token().Name != k.String() {
			t.Errorf("after %d came %v", last, l.Token())
		}
		last = l.Token().Number
		release(t, l)
	}
	err := managers[0].Do(t.Context(), k, func(ctx context.Context) error {
		return managers[0].Do(ctx, other, func(ctx context.Context) error {
			if carried := fence.FromContext(ctx); len(carried) != 2 || carried[0].Number != last+1 || carried[1].Name != other.String() {
				t.Errorf("the context carries %v", carried)
			}
			return nil
		}, sessionlock.Fenced())
	}, sessionlock.Fenced())
	if err != nil {
		t.Error(err)
	}
	if _, err := managers[0].Acquire(t.Context(), k, sessionlock.Fenced(), sessionlock.Shared()); !errors.Is(err, sessionlock.ErrOption) {
		t.Errorf("Shared with Fenced: %v", err) // L12
	}
}

func TestFenced_manyAtOnce(t *testing.T) {
	t.Parallel()
	m := openAt(t, migrate(t))
	var wg sync.WaitGroup
	for i := range 300 {
		wg.Go(func() {
			k := lockkey.Of(t.Name(), i)
			var last int64
			for range 3 {
				l, err := m.Acquire(t.Context(), k, sessionlock.Fenced())
				if err != nil {
					t.Error(err)
					return
				}
				if l.Token().Number <= last {
					t.Errorf("%v after %d", l.Token(), last)
				}
				last = l.Token().Number
				release(t, l)
			}
		})
	}
	wg.Wait()
}

func TestFenced_withoutTableNothingIsHeld(t *testing.T) {
	t.Parallel()
	pgtest.SQLDB(t, pgtest.Schema())
	m := openAt(t, pgtest.SchemaDSN(t))
	k := pgtest.Key(t)
	_, err := m.Acquire(t.Context(), k, sessionlock.Fenced())
	if err == nil || !strings.Contains(err.Error(), "fence.Migrate") || !strings.Contains(err.Error(), k.String()) {
		t.Errorf("got %v", err)
	}
	if pgtest.Held(t, k) {
		t.Error("held after the error")
	}
}

// L11: a locked token row holds up its own key and no other.
func TestFenced_lockedRowDelaysItsKeyOnly(t *testing.T) {
	t.Parallel()
	m := openAt(t, migrate(t))
	k, free := pgtest.Key(t), pgtest.Key(t, "free")
	l := acquire(t, m, k, sessionlock.Fenced())
	release(t, l)
	tx, err := pgtest.SQLDB(t, pgtest.Schema()).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fence.Latest(t.Context(), tx, l.Token()); err != nil {
		t.Fatal(err)
	}
	got := acquiring(t, m, k, sessionlock.Fenced())
	for range 20 {
		l, err := m.Acquire(t.Context(), free, sessionlock.Fenced(), sessionlock.Timeout(bound))
		if err != nil {
			t.Fatal(err)
		}
		release(t, l)
	}
	select {
	case l := <-got:
		t.Fatalf("%v was issued while its row was locked", l.Token())
	default:
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	later := <-got
	if later.Token().Number != l.Token().Number+1 {
		t.Errorf("after %v came %v", l.Token(), later.Token())
	}
	release(t, later)
}

// If a lock is lost while its token is on its way, it is taken again, with a later token.
func TestFenced_lostBeforeItsToken(t *testing.T) {
	t.Parallel()
	s := newStage(t, "INSERT INTO gormlock_fence", wiretap.HoldAnswer, false)
	type taken struct {
		lock *sessionlock.Lock
		err  error
	}
	got := make(chan taken)
	go func() {
		l, err := s.m.Acquire(t.Context(), s.key, sessionlock.Fenced())
		got <- taken{l, err}
	}()
	s.awaitHeld()
	pid := pgtest.Locks(t, s.key)[0].PID
	pgtest.Kill(t, pid)
	for sessionlock.Alive(s.m, pid) {
		<-time.After(100 * time.Microsecond)
	}
	s.proxy.Resume()
	g := <-got
	if g.err != nil {
		t.Fatal(g.err)
	}
	if g.lock.Err() != nil || g.lock.PID() == pid || g.lock.Token().Number != 1<<40+2 {
		t.Errorf("%v, on %d after %d, with %v", g.lock.Err(), g.lock.PID(), pid, g.lock.Token())
	}
	release(t, g.lock)
}

// An error of one key, such as a name that the encoding of the database lacks, goes to that key alone, even if other keys share its statement.
func TestFenced_errorOfOneKey(t *testing.T) {
	t.Parallel()
	p, dsn := pgtest.Tap(t, migrate(t))
	if _, err := pgtest.SQLDB(t, pgtest.Schema()).ExecContext(t.Context(), "ALTER TABLE gormlock_fence ADD CHECK (name NOT LIKE '%unwanted%')"); err != nil {
		t.Fatal(err)
	}
	m := openAt(t, dsn)
	release(t, acquire(t, m, pgtest.Key(t), sessionlock.Fenced())) // the connection for tokens
	const n = 40
	var wg sync.WaitGroup
	var once sync.Once
	p.OnQuery(func(sql string) wiretap.Action { // so that the others share a statement
		action := wiretap.Pass
		if strings.Contains(sql, "gormlock_fence") {
			once.Do(func() { action = wiretap.HoldRequest })
		}
		return action
	})
	wg.Go(func() {
		l, err := m.Acquire(t.Context(), lockkey.Of(t.Name(), "first"), sessionlock.Fenced())
		if err != nil {
			t.Error(err)
			return
		}
		release(t, l)
	})
	if err := p.AwaitHeld(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		wg.Go(func() {
			k := lockkey.Of(t.Name(), []string{"wanted", "unwanted"}[i%n/(n-1)], i)
			l, err := m.Acquire(t.Context(), k, sessionlock.Fenced(), sessionlock.Timeout(bound))
			switch {
			case i < n-1 && err != nil:
				t.Errorf("%v: %v", k, err)
			case i < n-1:
				release(t, l)
			case err == nil || errors.Is(err, sessionlock.ErrLockTimeout) || !strings.Contains(err.Error(), "no fencing token"):
				t.Errorf("%v: %v", k, err)
			}
		})
	}
	for sessionlock.Tokens(m) < n {
		<-time.After(100 * time.Microsecond)
	}
	p.Resume()
	wg.Wait()
	pgtest.AssertFree(t, lockkey.Of(t.Name(), "unwanted", n-1))
}

// L11: a commit that waits for a missing standby holds up no lock. A token is only returned after its commit was waited for.
func TestFenced_missingSynchronousStandby(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	dsn := server.DSN("postgres")
	db := pgtest.SQLDB(t, pgtest.Through(dsn))
	if err := fence.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	pgtest.MakeCommitsWait(t, db)
	m := openAt(t, dsn)
	fenced, plain := lockkey.Of("fenced"), lockkey.Of("plain")
	failed := make(chan error, 1)
	go func() {
		_, err := m.Acquire(t.Context(), fenced, sessionlock.Fenced())
		failed <- err
	}()
	var pid int
	for pid == 0 {
		if len(failed) > 0 {
			t.Fatalf("it did not wait: %v", <-failed)
		}
		_ = db.QueryRowContext(t.Context(), "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&pid)
	}
	for range 10 {
		release(t, acquire(t, m, plain))
	}
	if _, err := db.ExecContext(t.Context(), "SELECT pg_cancel_backend($1)", pid); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "no fencing token") {
		t.Errorf("got %v", err)
	}
	pgtest.Observe(t, dsn).AssertFree(t, fenced)

	_, err := m.Acquire(t.Context(), fenced, sessionlock.Fenced(), sessionlock.Timeout(100*time.Millisecond))
	if !errors.Is(err, sessionlock.ErrLockTimeout) {
		t.Errorf("got %v", err)
	}
	pgtest.Observe(t, dsn).AssertFree(t, fenced)
}
