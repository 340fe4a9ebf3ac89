package sessionlock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// P14: a standby would grant what its primary holds.
func TestOpen_refusesAStandby(t *testing.T) {
	t.Parallel()
	primary := pgtest.Fresh(t)
	standby := pgtest.Standby(t, primary)
	_, err := sessionlock.Open(t.Context(), standby.DSN("postgres"))
	if !errors.Is(err, sessionlock.ErrStandby) || !strings.Contains(err.Error(), "target_session_attrs=read-write") {
		t.Errorf("got %v", err)
	}
	both := fmt.Sprintf("postgres://postgres@%s:%d,%s:%d/postgres?sslmode=disable&target_session_attrs=read-write",
		standby.Host(), standby.Port(), primary.Host(), primary.Port())
	release(t, acquire(t, openAt(t, both), lockkey.Of("a")))
}

func TestOpen_namesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]sessionlock.Option{
		"Owner":      {sessionlock.Owner("a\x00b")},
		"Heartbeat":  {sessionlock.Heartbeat(100 * time.Millisecond)},
		"MaxLocks":   {sessionlock.MaxLocks(0)},
		"MaxWaiters": {sessionlock.MaxWaiters(-1)},
	} {
		_, err := sessionlock.Open(t.Context(), pgtest.DSN(t), opts...)
		if !errors.Is(err, sessionlock.ErrOption) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	expired := errors.New("the token has expired")
	_, err := sessionlock.Open(t.Context(), pgtest.DSN(t), sessionlock.BeforeConnect(func(context.Context, *pgx.ConnConfig) error { return expired }))
	if !errors.Is(err, expired) {
		t.Errorf("got %v", err)
	}
	if _, err := sessionlock.Open(t.Context(), "postgres://postgres:secret@127.0.0.1:1/x"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	m := open(t)
	if _, err := m.Acquire(t.Context(), lockkey.Of()); !errors.Is(err, lockkey.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// pgx reads the connection strings of some other databases as one setting for the server that the environment names. Nothing connects to that
// server, and no password is sent there.
func TestOpen_refusesTheConnectionStringOfAnotherDatabase(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var connections atomic.Int64
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	t.Setenv("PGHOST", host)
	t.Setenv("PGPORT", port)
	for dsn, name := range map[string]string{
		"root:s3cret@tcp(db:3306)/shop?parseTime=true":    "MySQL or MariaDB",
		"root:s3=cret@unix(/run/mysqld.sock)/shop":        "MySQL or MariaDB",
		"mysql://root:s3cret@db/shop":                     "MySQL or MariaDB",
		"file:s3cret.db?cache=shared":                     "SQLite",
		"sqlserver://sa:s3cret@db?database=shop":          "SQL Server",
		"u/s3cret@db:1521/shop?x=y":                       "",
		"server=db;user id=sa;password=s3cret;database=x": "SQL Server",
	} {
		open := map[string]func() (*sessionlock.Manager, error){"Open": func() (*sessionlock.Manager, error) { return sessionlock.Open(t.Context(), dsn) }}
		if config, err := pgx.ParseConfig(dsn); err == nil {
			open["OpenConfig"] = func() (*sessionlock.Manager, error) { return sessionlock.OpenConfig(t.Context(), config) }
		}
		for door, open := range open {
			_, err := open()
			if err == nil || errors.Is(err, advisory.ErrNotPostgres) != (name != "") || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "s3c") {
				t.Errorf("%s of %s: %v", door, dsn, err)
			}
		}
	}
	if n := connections.Load(); n > 0 {
		t.Errorf("%d connections", n)
	}
	if _, err := sessionlock.Open(t.Context(), "dbname=shop application_name=b sslmode=disable"); err == nil || connections.Load() == 0 {
		t.Errorf("a connection string of PostgreSQL: %v, %d connections", err, connections.Load())
	}
}

func TestBeforeConnect_givesThePassword(t *testing.T) {
	t.Parallel()
	var calls int
	var mu sync.Mutex
	m := open(t, sessionlock.Owner("it's me"), sessionlock.BeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error {
		mu.Lock()
		defer mu.Unlock()
		calls++
		c.Password = fmt.Sprint("password ", calls)
		return nil
	}))
	l := acquire(t, m, pgtest.Key(t))
	var name string
	err := pgtest.Conn(t).QueryRow(t.Context(), "SELECT application_name FROM pg_stat_activity WHERE pid = $1", l.PID()).Scan(&name)
	if err != nil || name != "gormlock it's me" {
		t.Errorf("the session is called %q, %v", name, err)
	}
	release(t, l)
	if calls < 2 {
		t.Errorf("%d calls", calls)
	}
}

// P13, L14: only the end of the session releases its locks.
func TestSession_survivesTheServersTimeouts(t *testing.T) {
	t.Parallel()
	// On a busy machine, a connection that has not set its own timeout yet may be idle for a second.
	server := pgtest.Fresh(t, pgserver.Setting("idle_session_timeout", "4s"), pgserver.Setting("statement_timeout", "1s"))
	dsn := server.DSN("postgres")
	m, rival := openAt(t, dsn), openAt(t, dsn)
	k := lockkey.Of("a")
	l := acquire(t, m, k)
	if _, err := rival.Acquire(t.Context(), k, sessionlock.Timeout(6*time.Second)); !errors.Is(err, sessionlock.ErrLockTimeout) {
		t.Errorf("the rival got %v", err)
	}
	if l.Err() != nil {
		t.Error(l.Err())
	}
	release(t, l)
}

func TestMaxLocks(t *testing.T) {
	t.Parallel()
	m := open(t, sessionlock.MaxLocks(2))
	k := []lockkey.Key{pgtest.Key(t, 0), pgtest.Key(t, 1), pgtest.Key(t, 2)}
	first := acquire(t, m, k[0])
	second := acquire(t, m, k[1])
	if _, err := m.Acquire(t.Context(), k[2]); !errors.Is(err, sessionlock.ErrTooManyLocks) || !strings.Contains(err.Error(), "MaxLocks") {
		t.Errorf("got %v", err)
	}
	release(t, first)
	third := acquire(t, m, k[2])
	release(t, second)
	release(t, third)
}

// L9, P2: the server's lock table is full.
func TestTooManyLocks_nothingLeaksWhenTheTableIsFull(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t, pgserver.Setting("max_connections", "10"), pgserver.Setting("max_locks_per_transaction", "10"),
		pgserver.Setting("max_prepared_transactions", "0"))
	dsn := server.DSN("postgres")
	m := openAt(t, dsn, sessionlock.MaxLocks(100_000))
	var mu sync.Mutex
	var held sessionlock.Locks
	refused := 0
	var wg sync.WaitGroup
	for i := range 3_000 {
		wg.Go(func() {
			l, err := m.TryAcquire(t.Context(), lockkey.Of("full", i))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				held = append(held, l)
			case errors.Is(err, sessionlock.ErrTooManyLocks) && strings.Contains(err.Error(), "max_locks_per_transaction"):
				refused++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	t.Logf("%d held, %d refused", len(held), refused)
	if refused == 0 {
		t.Fatal("the table was not full: this proves nothing")
	}
	for _, l := range held {
		if err := l.Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := held[100:].Release(t.Context()); err != nil {
		t.Error(err)
	}
	var n int
	if err := pgtest.Conn(t, pgtest.Through(dsn)).QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").Scan(&n); err != nil || n != 100 {
		t.Errorf("%d locks are held, %v; 100 should be", n, err)
	}
	if err := held[:100].Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// 5,000 locks on a default server, on one connection.
func TestManyLocks_onOneConnection(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t, pgserver.Setting("max_connections", "100"), pgserver.Setting("max_locks_per_transaction", "64"),
		pgserver.Setting("max_prepared_transactions", "0"))
	dsn := server.DSN("postgres")
	m := openAt(t, dsn)
	keys := make([]lockkey.Key, 5_000)
	for i := range keys {
		keys[i] = lockkey.Of("many", i)
	}
	locks, err := m.AcquireAll(t.Context(), keys...)
	if err != nil {
		t.Fatal(err)
	}
	var sessions, n int
	err = pgtest.Conn(t, pgtest.Through(dsn)).QueryRow(t.Context(),
		"SELECT count(DISTINCT pid), count(*) FROM pg_locks WHERE locktype = 'advisory'").Scan(&sessions, &n)
	if err != nil || n != 5_000 || sessions != 1 {
		t.Errorf("%d locks on %d sessions, %v", n, sessions, err)
	}
	for i := range 121 { // 80 % of 64 × 100 are 5,120
		keys = append(keys, lockkey.Of("more", i))
	}
	if _, err := m.AcquireAll(t.Context(), keys[5_000:]...); !errors.Is(err, sessionlock.ErrTooManyLocks) {
		t.Errorf("beyond the default of MaxLocks: %v", err)
	}
	if err := locks.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
