package pgtest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// lock takes a session lock, exclusive or shared.
func lock(t testing.TB, c *pgx.Conn, key lockkey.Key) {
	t.Helper()
	call(t, c, "pg_advisory_lock", key)
}

func lockShared(t testing.TB, c *pgx.Conn, key lockkey.Key) {
	t.Helper()
	call(t, c, "pg_advisory_lock_shared", key)
}

func call(t testing.TB, c *pgx.Conn, function string, key lockkey.Key) {
	t.Helper()
	sql, args := pgtest.OfKey(function, key)
	if _, err := c.Exec(context.Background(), sql, args...); err != nil {
		t.Error(err)
	}
}

func pid(c *pgx.Conn) int { return int(c.PgConn().PID()) }

func TestLocks(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]lockkey.Key{
		"bigint":      pgtest.Key(t),
		"negative":    lockkey.Int64(-8_000_000_000_000_000_001),
		"minus one":   lockkey.Int64(-1),
		"pair":        pgtest.PairKey(t),
		"signed pair": lockkey.Pair(-2_000_000_007, -1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if pgtest.Held(t, key) {
				t.Error("held before anybody took it")
			}
			a, b := pgtest.Conn(t), pgtest.Conn(t)
			lockShared(t, a, key)
			lockShared(t, b, key)
			locks := pgtest.Locks(t, key)
			if len(locks) != 2 || locks[0].Mode != "ShareLock" || !locks[0].Granted || !locks[1].Granted {
				t.Errorf("%+v", locks)
			}
			call(t, a, "pg_advisory_unlock_shared", key)
			call(t, b, "pg_advisory_unlock_shared", key)
			pgtest.AssertFree(t, key)
			lock(t, a, key)
			if locks := pgtest.Locks(t, key); len(locks) != 1 || locks[0] != (pgtest.Lock{PID: pid(a), Mode: "ExclusiveLock", Granted: true}) {
				t.Errorf("%+v, want one by %d", locks, pid(a))
			}
		})
	}
}

// A bigint and a pair with the same bits are two locks.
func TestKeySpacesAreApart(t *testing.T) {
	t.Parallel()
	pair := pgtest.PairKey(t)
	hi, lo, _ := pair.Pair()
	bigint := lockkey.Int64(int64(hi)<<32 | int64(uint32(lo)))
	lock(t, pgtest.Conn(t), pair)
	if !pgtest.Held(t, pair) || pgtest.Held(t, bigint) {
		t.Error("a pair is seen as a bigint")
	}
}

func TestWaits(t *testing.T) {
	t.Parallel()
	key := pgtest.Key(t)
	holder := pgtest.Conn(t)
	lock(t, holder, key)
	const rivals = 3
	done := make(chan struct{})
	for range rivals {
		rival := pgtest.Conn(t)
		go func() {
			defer func() { done <- struct{}{} }()
			lockShared(t, rival, key)
		}()
	}
	pgtest.WaitBlocked(t, key, rivals)
	waiting := 0
	for _, l := range pgtest.Locks(t, key) {
		if l.Granted != (l.PID == pid(holder)) {
			t.Errorf("%+v", l)
		}
		if !l.Granted {
			waiting++
			pgtest.WaitBackendBlocked(t, l.PID)
		}
	}
	if waiting != rivals {
		t.Errorf("%d wait, want %d", waiting, rivals)
	}
	pgtest.Kill(t, pid(holder))
	for range rivals {
		<-done
	}
}

func TestRowLockBlocksBackend(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	a, b := pgtest.Conn(t, pgtest.Schema()), pgtest.Conn(t, pgtest.Schema())
	for _, sql := range []string{"create table t as select 1 as n", "begin", "update t set n = 2"} {
		if _, err := a.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error)
	go func() {
		_, err := b.Exec(ctx, "update t set n = 3")
		done <- err
	}()
	pgtest.WaitBackendBlocked(t, pid(b))
	if _, err := a.Exec(ctx, "commit"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestFailuresSayWhatIsSeen(t *testing.T) {
	t.Parallel()
	holder := pgtest.Conn(t)
	key := pgtest.Key(t, "mine")
	lock(t, holder, key)
	said := failing(t, func(t testing.TB) { pgtest.AssertFree(t, key) })
	for _, word := range []string{"mine", "should be free", "ExclusiveLock"} {
		if !strings.Contains(said, word) {
			t.Errorf("AssertFree says %q, not %q", said, word)
		}
	}
	if said := failing(t, func(t testing.TB) { pgtest.Kill(t, 1<<22+1) }); !strings.Contains(said, "no backend 4194305") {
		t.Errorf("Kill says %q", said)
	}
	if said := failing(t, func(t testing.TB) { pgtest.Held(t, lockkey.Of()) }); !strings.Contains(said, "invalid") {
		t.Errorf("Held of an invalid key says %q", said)
	}
	call(t, holder, "pg_advisory_unlock", key)
}

func TestKill(t *testing.T) {
	t.Parallel()
	victim := pgtest.Conn(t)
	pgtest.Kill(t, pid(victim))
	if err := victim.Ping(context.Background()); err == nil {
		t.Error("the backend lives")
	}
}

// An observer of a server that crashed sees the restarted server.
func TestObserverAfterCrash(t *testing.T) {
	t.Parallel()
	s := pgtest.Fresh(t)
	o := pgtest.Observe(t, s.DSN("postgres"))
	key := pgtest.Key(t)
	lock(t, pgtest.Conn(t, pgtest.Through(s.DSN("postgres"))), key)
	if !o.Held(t, key) {
		t.Error("not held")
	}
	if err := s.Crash(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
	o.AssertFree(t, key)
}
