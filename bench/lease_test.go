package bench

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// leaseConns is how many connections leases, the SQL by hand and redislock have each.
const leaseConns = 16

// BenchmarkLease compares acquire and release of leases on distinct keys: gormlock's, each
// with a fencing token, with redislock on a local Redis, and with an upsert and a delete by
// hand. Neither PostgreSQL nor Redis syncs to disk, as tests run them; "durable" does, with
// each commit and each command.
func BenchmarkLease(b *testing.B) {
	for _, durable := range []bool{false, true} {
		dsn := pgtest.DSN(b)
		suffix := ""
		if durable {
			dsn = pgtest.Fresh(b, pgserver.Setting("fsync", "on"), pgserver.Setting("full_page_writes", "on")).DSN("postgres")
			suffix = "/durable"
		}
		db := leasePool(b, dsn)
		m, err := lease.New(b.Context(), db)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = m.Close(context.Background()) }()
		peers := map[string]once{"sql": upserted(b, leasePool(b, dsn)), "redislock": redislocked(b, durable)}
		for _, peer := range []string{"redislock", "sql"} {
			for _, n := range []int{1, 8, 100} {
				b.Run(fmt.Sprintf("peer=%s/goroutines=%d%s", peer, n, suffix), func(b *testing.B) {
					paired(b, 100*time.Millisecond,
						func(until time.Time) int { return crowd(b, n, until, peers[peer]) },
						func(until time.Time) int { return crowd(b, n, until, leased(m)) })
				})
			}
		}
	}
}

func leasePool(b *testing.B, dsn string) *sql.DB {
	b.Helper()
	db := pool(b, dsn)
	db.SetMaxOpenConns(leaseConns)
	db.SetMaxIdleConns(leaseConns)
	if err := lease.Migrate(b.Context(), db); err != nil {
		b.Fatal(err)
	}
	return db
}

func leased(m *lease.Manager) once {
	return func(ctx context.Context, key lockkey.Key) error {
		l, err := m.TryAcquire(ctx, key, 30*time.Second)
		if err != nil {
			return err
		}
		return l.Release(ctx)
	}
}

// upserted is one row for each lock: no token, and nothing that renews.
func upserted(b *testing.B, db *sql.DB) once {
	if _, err := db.ExecContext(b.Context(), "CREATE TABLE IF NOT EXISTS locks (name text PRIMARY KEY, owner text NOT NULL, expires_at timestamptz NOT NULL)"); err != nil {
		b.Fatal(err)
	}
	return func(ctx context.Context, key lockkey.Key) error {
		const take = `INSERT INTO locks VALUES ($1, $2, now() + interval '30 seconds')
			ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at WHERE locks.expires_at <= now()`
		for _, statement := range []string{take, "DELETE FROM locks WHERE name = $1 AND owner = $2"} {
			result, err := db.ExecContext(ctx, statement, key.String(), "bench")
			if err != nil {
				return err
			}
			if n, err := result.RowsAffected(); n != 1 {
				return fmt.Errorf("%d rows, %w", n, err)
			}
		}
		return nil
	}
}

// redislocked runs a Redis for the benchmark.
func redislocked(b *testing.B, durable bool) once {
	b.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("GORMLOCK_WITHOUT_REDIS") != "" {
			return func(context.Context, lockkey.Key) error { b.Skip("left out by GORMLOCK_WITHOUT_REDIS"); return nil }
		}
		b.Fatalf("%v: scripts/require-redis installs it, GORMLOCK_WITHOUT_REDIS=1 leaves it out", err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	_ = free.Close()
	args := []string{"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", b.TempDir(), "--save", ""}
	if durable {
		args = append(args, "--appendonly", "yes", "--appendfsync", "always")
	}
	server := exec.Command(program, args...)
	if err := server.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	client := redis.NewClient(&redis.Options{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), PoolSize: leaseConns, PoolTimeout: time.Minute})
	b.Cleanup(func() { _ = client.Close() })
	for limit := time.Now().Add(10 * time.Second); client.Ping(b.Context()).Err() != nil; {
		if time.Now().After(limit) {
			b.Fatal("redis does not answer")
		}
	}
	locker := redislock.New(client)
	return func(ctx context.Context, key lockkey.Key) error {
		l, err := locker.Obtain(ctx, key.String(), 30*time.Second, nil)
		if err != nil {
			return err
		}
		return l.Release(ctx)
	}
}
