package bench

import (
	"context"
	"sync"
	"testing"

	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// BenchmarkSessionHeld holds 5,000 session locks at once, each acquired separately, on a server with PostgreSQL's default settings, and reports on
// how many connections.
func BenchmarkSessionHeld(b *testing.B) {
	const locks, workers = 5_000, 50
	dsn := pgtest.Fresh(b, pgserver.Setting("max_connections", "100"), pgserver.Setting("max_locks_per_transaction", "64"),
		pgserver.Setting("max_prepared_transactions", "0")).DSN("postgres")
	m, err := sessionlock.Open(b.Context(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { must(b, m.Close(context.Background())) }()
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for i := worker; i < locks; i += workers {
				_, err := m.Acquire(b.Context(), lockkey.Of("held", i))
				must(b, err)
			}
		})
	}
	all.Wait()
	var held, connections int
	must(b, connect(b, dsn).QueryRow(b.Context(), `SELECT
		(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted),
		(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())`).Scan(&held, &connections))
	if held != locks {
		b.Fatalf("%d locks are held", held)
	}
	for b.Loop() { // one round: a count does not vary
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(connections), "connections")
}
