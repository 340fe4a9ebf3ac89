package sessionlock_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

func TestLoss_restartedServer(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	m := openAt(t, server.DSN("postgres"))
	k := lockkey.Of("a")
	l := lostBy(t, m, k, func() error { return server.Restart(t.Context()) })
	again := acquire(t, m, k)
	if again.PID() == l.PID() && again.Err() != nil {
		t.Error("a lock of the server that was ended")
	}
	release(t, again)
}

// A lock that was waited for lives on the connection that waited. If that connection ends, this lock is lost, and locks on other connections are
// not.
func TestLoss_ofAConnectionThatWaited(t *testing.T) {
	t.Parallel()
	holder, m := open(t), open(t)
	waited, free := pgtest.Key(t, "waited"), pgtest.Key(t, "free")
	blocker := acquire(t, holder, waited)
	got := acquiring(t, m, waited)
	other := acquire(t, m, free)
	pgtest.WaitBlocked(t, waited, 1)
	release(t, blocker)
	l := <-got
	if l.PID() == other.PID() {
		t.Fatal("it was granted on the connection of the other lock")
	}
	pgtest.Kill(t, l.PID())
	assertLost(t, m, l)
	release(t, acquire(t, m, waited))
	if err := other.Err(); err != nil {
		t.Errorf("the other lock: %v", err)
	}
	release(t, other)
}

// protect makes a server require a password for the role renewed.
func protect(t testing.TB, server *pgserver.Server, password string) *pgx.Conn {
	t.Helper()
	admin := pgtest.Conn(t, pgtest.Through(server.DSN("postgres")))
	for _, sql := range []string{
		"CREATE ROLE renewed LOGIN PASSWORD '" + password + "'",
		`DO $$ BEGIN EXECUTE format('COPY (SELECT ''host all renewed all scram-sha-256'' UNION ALL SELECT * FROM regexp_split_to_table(%L, E''\n'')) TO %L',
			pg_read_file(current_setting('hba_file')), current_setting('hba_file')); END $$`,
		"SELECT pg_reload_conf()",
	} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for refused := false; !refused; { // until the server has read the change
		c, err := pgx.Connect(t.Context(), strings.Replace(server.DSN("postgres"), "postgres@", "renewed:wrong@", 1))
		if refused = err != nil; !refused {
			_ = c.Close(t.Context())
		}
	}
	return admin
}

// A manager survives a password that expired, and says why it waits. It needs no privilege except to log in.
func TestBeforeConnect_passwordExpires(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	admin := protect(t, server, "first")
	var password atomic.Value
	password.Store("first")
	dsn := strings.Replace(server.DSN("postgres"), "postgres@", "renewed:wrong@", 1)
	_, err := sessionlock.Open(t.Context(), dsn)
	if err == nil || !strings.Contains(err.Error(), "28P01") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("with a wrong password: %v", err)
	}
	broken := errors.New("no password today")
	m := openAt(t, dsn, sessionlock.BeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error {
		if c.Password = password.Load().(string); c.Password == "" {
			return broken
		}
		return nil
	}))
	k := lockkey.Of("a")
	l := acquire(t, m, k)
	if _, err := admin.Exec(t.Context(), "ALTER ROLE renewed PASSWORD 'second'"); err != nil {
		t.Fatal(err)
	}
	pgtest.Observe(t, server.DSN("postgres")).Kill(t, l.PID())
	assertLost(t, m, l)
	if _, err := m.TryAcquire(t.Context(), k); err == nil || !strings.Contains(err.Error(), "28P01") {
		t.Errorf("TryAcquire says %v", err)
	}
	_, err = m.Acquire(t.Context(), k, sessionlock.Timeout(100*time.Millisecond))
	if !errors.Is(err, sessionlock.ErrLockTimeout) || !strings.Contains(err.Error(), "no connection") || strings.Contains(err.Error(), "first") {
		t.Errorf("Acquire says %v", err)
	}
	password.Store("")
	for err = nil; !errors.Is(err, broken); {
		_, err = m.Acquire(t.Context(), k, sessionlock.Timeout(10*time.Millisecond))
	}
	password.Store("second")
	release(t, acquire(t, m, k))
}

// A session to wait on that could not be opened is opened later.
func TestWaiters_areDialledAgain(t *testing.T) {
	t.Parallel()
	holder := open(t)
	var refused atomic.Int32
	full := errors.New("no more connections")
	opened := make(chan struct{})
	m := open(t, sessionlock.Heartbeat(time.Second), sessionlock.BeforeConnect(func(context.Context, *pgx.ConnConfig) error {
		select {
		case <-opened:
			if refused.Add(1) <= 2 {
				return full
			}
		default: // Open
		}
		return nil
	}))
	close(opened)
	k := pgtest.Key(t)
	l := acquire(t, holder, k)
	if _, err := m.Acquire(t.Context(), k, sessionlock.Timeout(200*time.Millisecond)); !errors.Is(err, sessionlock.ErrLockTimeout) || !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	got := blocked(t, m, k)
	release(t, l)
	release(t, <-got)
}

// A server that accepts connections and soon ends them is not dialled in a loop.
func TestReconnect_waitsLongerEachTime(t *testing.T) {
	t.Parallel()
	var dials atomic.Int32
	p, dsn := pgtest.Tap(t, pgtest.DSN(t))
	m := openAt(t, dsn, sessionlock.BeforeConnect(func(context.Context, *pgx.ConnConfig) error {
		dials.Add(1)
		return nil
	}))
	k := pgtest.Key(t)
	before := dials.Load()
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		l := acquire(t, m, k)
		p.Cut()
		assertLost(t, m, l)
	}
	if n := dials.Load() - before; n < 2 || n > 8 {
		t.Errorf("%d dials in a second", n)
	}
	release(t, acquire(t, m, k))
}
