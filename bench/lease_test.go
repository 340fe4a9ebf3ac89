package bench

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// leaseConns is how many connections leases, the SQL by hand and redislock each have.
const leaseConns = 16

// BenchmarkLease compares acquire and release of leases on distinct keys: gormlock's, each with a fencing token, with redislock on a local Redis,
// with an upsert and a delete by hand, and with the statements of cirello.io/pglock. Neither PostgreSQL nor Redis syncs to disk, as in tests; in
// "durable" both do, with each commit and each command.
func BenchmarkLease(b *testing.B) {
	leases(b, pgtest.DSN(b), "", redisClient(b, false))
	durable := pgtest.Fresh(b, pgserver.Setting("fsync", "on"), pgserver.Setting("full_page_writes", "on"))
	leases(b, durable.DSN("postgres"), "/durable", redisClient(b, true))
}

// leases compares with all peers, except Redis if there is no client.
func leases(b *testing.B, dsn, suffix string, client *redis.Client) {
	m, err := lease.New(b.Context(), leasePool(b, dsn))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = m.Close(context.Background()) }()
	peers := []struct {
		name string
		do   once
	}{{"redislock", redislocked(client)}, {"sql", upserted(b, leasePool(b, dsn))}, {"pglock", pglocked(b, leasePool(b, dsn))}}
	for _, peer := range peers {
		if peer.name == "redislock" && client == nil {
			continue
		}
		for _, n := range []int{1, 8, 100} {
			b.Run(fmt.Sprintf("peer=%s/goroutines=%d%s", peer.name, n, suffix), func(b *testing.B) {
				paired(b, 100*time.Millisecond,
					func(until time.Time) int { return crowd(b, n, until, peer.do) },
					func(until time.Time) int { return crowd(b, n, until, leased(m)) })
			})
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
	b.Helper()
	const table = "CREATE TABLE IF NOT EXISTS locks_by_hand (name text PRIMARY KEY, owner text NOT NULL, expires_at timestamptz NOT NULL)"
	if _, err := db.ExecContext(b.Context(), table); err != nil {
		b.Fatal(err)
	}
	return func(ctx context.Context, key lockkey.Key) error {
		const take = `INSERT INTO locks_by_hand AS l VALUES ($1, $2, now() + interval '30 seconds')
			ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at WHERE l.expires_at <= now()`
		for _, statement := range []string{take, "DELETE FROM locks_by_hand WHERE name = $1 AND owner = $2"} {
			if err := oneRow(ctx, db, statement, key.String(), "bench"); err != nil {
				return err
			}
		}
		return nil
	}
}

func oneRow(ctx context.Context, db *sql.DB, statement string, args ...any) error {
	result, err := db.ExecContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); n != 1 {
		return fmt.Errorf("%d rows, %w", n, err)
	}
	return nil
}
