package sessionlock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// P17, L13: behind PgBouncer a session lock would stay on a server connection that others use.
func TestPgBouncer_transactionModeIsRefused(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t, pgserver.Setting("statement_timeout", "12s"))
	for name, lines := range map[string][]string{
		"last in first out": {"pool_mode = transaction"},
		"round robin":       {"pool_mode = transaction", "server_round_robin = 1"},
		"statement":         {"pool_mode = statement"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := pgtest.StartPgBouncer(t, server.DSN("postgres"), lines...)
			if name != "statement" {
				occupy(t, b.DSN(), 3)
			}
			_, err := sessionlock.Open(t.Context(), b.DSN())
			if !errors.Is(err, sessionlock.ErrPooler) || !strings.Contains(err.Error(), "session mode") {
				t.Errorf("got %v", err)
			}
			_, err = sessionlock.Open(t.Context(), b.DSN(), sessionlock.AllowPooler())
			if !errors.Is(err, sessionlock.ErrPooler) {
				t.Errorf("with AllowPooler: %v", err)
			}
			assertNoSettingLeft(t, b.DSN())
		})
	}
}

// occupy makes the pooler open n connections to the server.
func occupy(t testing.TB, dsn string, n int) {
	t.Helper()
	conns := make([]*pgx.Conn, n)
	for i := range conns {
		var err error
		if conns[i], err = pgx.Connect(t.Context(), simple(dsn)); err != nil {
			t.Fatal(err)
		}
		if _, err := conns[i].Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range conns {
		_ = conn.Close(t.Context())
	}
}

func simple(dsn string) string { return dsn + "&default_query_exec_mode=simple_protocol" }

// assertNoSettingLeft checks the server connections that other clients get.
func assertNoSettingLeft(t testing.TB, dsn string) {
	t.Helper()
	for range 8 {
		conn, err := pgx.Connect(t.Context(), simple(dsn))
		if err != nil {
			t.Fatal(err)
		}
		var timeout string
		if err := conn.QueryRow(t.Context(), "SHOW statement_timeout").Scan(&timeout); err != nil || timeout != "12s" {
			t.Errorf("another client has statement_timeout %s, %v", timeout, err)
		}
		_ = conn.Close(t.Context())
	}
}

func TestPgBouncer_sessionModeWithAllowPooler(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	observer := pgtest.Observe(t, server.DSN("postgres"))
	b := pgtest.StartPgBouncer(t, server.DSN("postgres"), "pool_mode = session")
	if _, err := sessionlock.Open(t.Context(), b.DSN()); !errors.Is(err, sessionlock.ErrPooler) || !strings.Contains(err.Error(), "AllowPooler") {
		t.Errorf("without AllowPooler: %v", err)
	}
	m, rival := openAt(t, b.DSN(), sessionlock.AllowPooler()), openAt(t, server.DSN("postgres"))
	k := lockkey.Of("a")
	l := acquire(t, m, k)
	if held := observer.Locks(t, k); len(held) != 1 || held[0].PID != l.PID() {
		t.Errorf("%+v, the lock says %d", held, l.PID())
	}
	if _, err := rival.TryAcquire(t.Context(), k); !errors.Is(err, sessionlock.ErrNotAcquired) {
		t.Errorf("the rival got %v", err)
	}
	b.Kill()
	assertLost(t, m, l)
	b.Start()
	again, err := m.Acquire(t.Context(), k, sessionlock.Timeout(bound))
	if err != nil {
		t.Fatal(err)
	}
	release(t, again)
}
