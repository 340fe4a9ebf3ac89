package locks_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lockkey"
)

// oneSession is a database of one connection, through a proxy.
type oneSession struct {
	db    *gorm.DB
	proxy *wiretap.Proxy
}

func newOneSession(t *testing.T, dsn string, opts ...pgtest.Option) oneSession {
	t.Helper()
	proxy, tapped := pgtest.Tap(t, dsn)
	plugin := gormlock.New()
	t.Cleanup(func() { _ = plugin.Close() })
	return oneSession{pgtest.Open(t, append(opts, pgtest.Through(tapped), pgtest.MaxConns(1), pgtest.Plugin(plugin))...), proxy}
}

// take begins a transaction with the lock and returns the texts that began it. The lock is held in it, and free again.
func (s oneSession) take(t *testing.T, key lockkey.Key, opts ...gormlock.LockOption) (began []string) {
	t.Helper()
	s.proxy.Reset()
	err := gormlock.Transaction(s.db, func(tx *gorm.DB) error {
		began = s.proxy.Statements()
		if !pgtest.Held(t, key) {
			t.Error("the lock is not held")
		}
		// Not a query: the driver would have prepared it, and may have to learn that it is lost.
		return tx.Exec("SELECT 1 / (current_setting('lock_timeout') = '0')::int").Error
	}, gormlock.Locking(key, opts...))
	if err != nil {
		t.Fatal(err)
	}
	pgtest.AssertFree(t, key)
	return began
}

func kindOf(text string) string {
	switch {
	case strings.Contains(text, "; PREPARE gormlock_"):
		return "prepared"
	case strings.Contains(text, "; EXECUTE gormlock_"):
		return "executed"
	case strings.Contains(text, "pg_backend_pid() = "):
		return "asked"
	case strings.HasPrefix(text, "BEGIN; ") && strings.Contains(text, "advisory_xact_lock"):
		return "plain"
	default:
		return text
	}
}

func (s oneSession) kinds(t *testing.T, n int, key lockkey.Key, opts ...gormlock.LockOption) (kinds []string) {
	t.Helper()
	for range n {
		for _, text := range s.take(t, key, opts...) {
			kinds = append(kinds, kindOf(text))
		}
	}
	return kinds
}

func wantKinds(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
}

// forms are calls for one lock, each of which has a prepared statement of its own.
func forms(t *testing.T) map[string][]gormlock.LockOption {
	t.Helper()
	return map[string][]gormlock.LockOption{
		"as the session waits": nil, "shared": {gormlock.Shared()}, "a timeout": {gormlock.Timeout(time.Minute)},
		"a timeout, shared": {gormlock.Timeout(time.Minute), gormlock.Shared()}, "any snapshot": {gormlock.AllowSnapshot()},
		"tried": {gormlock.Try()}, "tried, shared": {gormlock.Try(), gormlock.Shared()}, "tried, any snapshot": {gormlock.Try(), gormlock.AllowSnapshot()},
	}
}

// TestPrepared: a session takes its first lock by a plain text that says whether it is the server's own session, prepares
// the statement with the next and executes it from then on. BEGIN and lock are one message each time.
func TestPrepared(t *testing.T) {
	t.Parallel()
	for name, opts := range forms(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newOneSession(t, pgtest.DSN(t))
			wantKinds(t, s.kinds(t, 1, pgtest.Key(t, "first")), "asked")
			for _, key := range []lockkey.Key{pgtest.Key(t), pgtest.PairKey(t)} {
				wantKinds(t, s.kinds(t, 8, key, opts...), "prepared", "executed", "executed", "executed", "executed", "executed", "executed", "executed")
			}
		})
	}
}

// TestPrepared_everyNumber: the lowest number is one of its type, and no expression of another.
func TestPrepared_everyNumber(t *testing.T) {
	t.Parallel()
	s := newOneSession(t, pgtest.DSN(t))
	wantKinds(t, s.kinds(t, 1, pgtest.Key(t)), "asked")
	for _, opts := range forms(t) {
		wantKinds(t, s.kinds(t, 2, lockkey.Int64(math.MinInt64), opts...), "prepared", "executed")
		wantKinds(t, s.kinds(t, 2, lockkey.Pair(math.MinInt32, math.MaxInt32), opts...), "prepared", "executed")
	}
}

// TestPrepared_refused: what refuses a plain text refuses the statement, and the session is clean after it.
func TestPrepared_refused(t *testing.T) {
	t.Parallel()
	s := newOneSession(t, pgtest.DSN(t))
	key := pgtest.Key(t)
	empty := func(*gorm.DB) error { return nil }
	wantKinds(t, s.kinds(t, 1, key), "asked")
	release := rivalHolds(t, exclusively, key)
	for range 8 {
		if err := gormlock.Transaction(s.db, empty, gormlock.Locking(key, gormlock.Timeout(time.Millisecond))); !errors.Is(err, gormlock.ErrLockTimeout) {
			t.Errorf("with a timeout: %v", err)
		}
		if err := gormlock.Transaction(s.db, empty, gormlock.Locking(key, gormlock.Try())); !errors.Is(err, gormlock.ErrNotAcquired) {
			t.Errorf("tried: %v", err)
		}
	}
	s.proxy.Reset()
	if err := gormlock.Transaction(s.db, empty, gormlock.Locking(key, gormlock.Timeout(time.Millisecond))); !errors.Is(err, gormlock.ErrLockTimeout) {
		t.Error(err)
	}
	if sent := s.proxy.Statements(); len(sent) != 2 || kindOf(sent[0]) != "executed" || sent[1] != "ROLLBACK" {
		t.Errorf("sent %q", sent)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wantKinds(t, kindsOf(s.proxy, func() {
		ended := make(chan error, 1)
		go func() {
			ended <- gormlock.Transaction(s.db.WithContext(ctx), empty, gormlock.Locking(key, gormlock.Timeout(time.Minute)))
		}()
		pgtest.WaitBlocked(t, key, 1)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ctx ended: %v", err)
		}
	}), "executed")
	release()
	pgtest.AssertFree(t, key)
	wantKinds(t, s.kinds(t, 3, key, gormlock.Timeout(time.Minute)), "asked", "prepared", "executed") // another session: the driver closed that one
}

func kindsOf(proxy *wiretap.Proxy, run func()) (kinds []string) {
	proxy.Reset()
	run()
	for _, text := range proxy.Statements() {
		kinds = append(kinds, kindOf(text))
	}
	return kinds
}

// TestPrepared_isolation: the level is looked at each time, for it may change during the life of a session.
func TestPrepared_isolation(t *testing.T) {
	t.Parallel()
	s := newOneSession(t, pgtest.DSN(t))
	key := pgtest.Key(t)
	wantKinds(t, s.kinds(t, 3, key), "asked", "prepared", "executed")
	if err := s.db.Exec("SET default_transaction_isolation = 'repeatable read'").Error; err != nil {
		t.Fatal(err)
	}
	sent := s.take(t, key)
	if len(sent) != 3 || kindOf(sent[0]) != "executed" || sent[1] != "ROLLBACK" || !strings.HasPrefix(sent[2], "BEGIN ISOLATION LEVEL READ COMMITTED; ") {
		t.Errorf("sent %q", sent)
	}
}

// TestPrepared_lost: the lock is held although the session has lost what was prepared in it, or somebody else has prepared
// a statement of this name. A session that loses it again and again is left alone.
func TestPrepared_lost(t *testing.T) {
	t.Parallel()
	for _, forget := range []string{"DISCARD ALL", "DEALLOCATE ALL"} {
		t.Run(forget, func(t *testing.T) {
			t.Parallel()
			s := newOneSession(t, pgtest.DSN(t))
			key := pgtest.Key(t)
			for range 2 {
				wantKinds(t, s.kinds(t, 3, key), "asked", "prepared", "executed")
				if err := s.db.Exec(forget).Error; err != nil {
					t.Fatal(err)
				}
				wantKinds(t, s.kinds(t, 1, key), "executed", "ROLLBACK", "plain")
			}
			wantKinds(t, s.kinds(t, 3, key), "asked", "prepared", "executed")
			if err := s.db.Exec(forget).Error; err != nil {
				t.Fatal(err)
			}
			wantKinds(t, s.kinds(t, 4, key), "executed", "ROLLBACK", "plain", "plain", "plain", "plain")
		})
	}
	t.Run("another statement of this name", func(t *testing.T) {
		t.Parallel()
		known, s := newOneSession(t, pgtest.DSN(t)), newOneSession(t, pgtest.DSN(t))
		key := pgtest.Key(t)
		sent := known.kinds(t, 2, key)
		wantKinds(t, sent, "asked", "prepared")
		execute := known.take(t, key)[0]
		name, _, _ := strings.Cut(strings.TrimPrefix(execute, "BEGIN; EXECUTE "), "(")
		if err := s.db.Exec(fmt.Sprintf("PREPARE %s(bigint) AS SELECT 'nothing is locked', $1", name)).Error; err != nil {
			t.Fatal(err)
		}
		wantKinds(t, s.kinds(t, 4, key), "asked", "prepared", "ROLLBACK", "plain", "plain", "plain")
	})
}

// TestPrepared_notPrepared: nothing is prepared where the driver was told not to, nor behind a pooler that gives each
// transaction another session, whatever it was told.
func TestPrepared_notPrepared(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"simple_protocol", "exec", "cache_describe", "describe_exec"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := newOneSession(t, pgtest.DSN(t), pgtest.Param("default_query_exec_mode", mode))
			wantKinds(t, s.kinds(t, 3, pgtest.Key(t)), "plain", "plain", "plain")
		})
	}
	for name, lines := range map[string][]string{
		"PgBouncer, transactions": {"pool_mode = transaction"},
		"PgBouncer, sessions":     {"pool_mode = session"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newOneSession(t, pgtest.StartPgBouncer(t, pgtest.DSN(t), append(lines, "default_pool_size = 2")...).DSN())
			key := pgtest.Key(t)
			wantKinds(t, s.kinds(t, 4, key), "asked", "plain", "plain", "plain")
		})
	}
	t.Run("a server that is allowed by name", func(t *testing.T) {
		t.Parallel()
		s := newOneSession(t, pgtest.DSN(t))
		wantKinds(t, s.kinds(t, 3, pgtest.Key(t), advisory.AllowServer("CockroachDB")), "plain", "plain", "plain")
	})
}

// TestPrepared_promotion: a session that began on a standby is refused there, and takes its locks once the server is promoted.
func TestPrepared_promotion(t *testing.T) {
	t.Parallel()
	primary := pgtest.Fresh(t)
	standby := pgtest.Standby(t, primary)
	s := newOneSession(t, standby.DSN("postgres"))
	key := gormlock.Key(t.Name())
	begin := func() error {
		return gormlock.Transaction(s.db, func(*gorm.DB) error { return nil }, gormlock.Locking(key))
	}
	for range 3 {
		wantKinds(t, kindsOf(s.proxy, func() {
			if err := begin(); !errors.Is(err, gormlock.ErrStandby) {
				t.Errorf("on a standby: %v", err)
			}
		}), "asked", "ROLLBACK")
	}
	if err := s.db.Exec("SELECT pg_promote()").Error; err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"asked", "prepared", "executed"} {
		wantKinds(t, kindsOf(s.proxy, func() {
			if err := begin(); err != nil {
				t.Error(err)
			}
		}), want, "COMMIT")
	}
}
