package pgxlock_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/pgxlock"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// newPool is a pool of at most n connections to dsn.
func newPool(t testing.TB, dsn string, n int32, change ...func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = n
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	for _, c := range change {
		c(config)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// tapped is newPool of the test's database, behind a proxy that counts.
func tapped(t testing.TB, n int32, change func(*pgxpool.Config)) (*wiretap.Proxy, *pgxpool.Pool) {
	t.Helper()
	proxy, dsn := pgtest.Tap(t, pgtest.DSN(t))
	return proxy, newPool(t, dsn, n, change)
}

func simple(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol }

// ways are the ways of pgx to talk to a server.
var ways = map[string]func(*pgxpool.Config){
	"cached": func(*pgxpool.Config) {},
	"simple": simple,
	"exec":   func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec },
}

func begin(t testing.TB, db pgxlock.Beginner) pgx.Tx {
	t.Helper()
	tx, err := db.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

// pid is the server process behind a transaction or connection.
func pid(t testing.TB, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (pid int) {
	t.Helper()
	if err := q.QueryRow(context.Background(), "select pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	return pid
}

// rivalHolds takes the lock in a session of its own, until the returned function or the end of the test.
func rivalHolds(t testing.TB, key lockkey.Key) (free func()) {
	t.Helper()
	conn := pgtest.Conn(t)
	id, _ := key.Int64()
	if _, err := conn.Exec(context.Background(), "select pg_advisory_lock($1)", id); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.Exec(context.Background(), "select pg_advisory_unlock_all()"); err != nil {
			t.Error(err)
		}
	}
}
