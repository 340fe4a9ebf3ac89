package bench

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// renewals is a pgx tracer that measures the statements that renew leases.
type renewals struct {
	mu    sync.Mutex
	times []time.Duration
}

type renewalBegan struct{}

func (r *renewals) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, "SKIP LOCKED") && !strings.HasPrefix(data.SQL, "EXPLAIN") {
		return context.WithValue(ctx, renewalBegan{}, time.Now())
	}
	return ctx
}

func (r *renewals) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if began, ok := ctx.Value(renewalBegan{}).(time.Time); ok && data.Err == nil {
		r.mu.Lock()
		r.times = append(r.times, time.Since(began))
		r.mu.Unlock()
	}
}

// BenchmarkLeaseHeld holds 10,000 leases of 15 seconds in one process, and reports how many statements renewed them, how long each took, and how
// much the table grew.
func BenchmarkLeaseHeld(b *testing.B) {
	const n = 10_000
	config, err := pgx.ParseConfig(pgtest.DSN(b))
	if err != nil {
		b.Fatal(err)
	}
	traced := &renewals{}
	config.Tracer = traced
	db := stdlib.OpenDB(*config)
	defer db.Close()
	db.SetMaxOpenConns(leaseConns)
	db.SetMaxIdleConns(leaseConns)
	if err := lease.Migrate(b.Context(), db); err != nil {
		b.Fatal(err)
	}
	m, err := lease.New(b.Context(), db)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { must(b, m.Close(context.Background())) }()
	leases := make([]*lease.Lease, n)
	var wg sync.WaitGroup
	for g := range leaseConns {
		wg.Go(func() {
			for i := g; i < n; i += leaseConns {
				leases[i], err = m.Acquire(b.Context(), lockkey.Of("held", i), 15*time.Second)
				must(b, err)
			}
		})
	}
	wg.Wait()
	size := func() (bytes int64) {
		must(b, db.QueryRowContext(b.Context(), "SELECT pg_relation_size('gormlock_lease')").Scan(&bytes))
		return bytes
	}
	<-time.After(10 * time.Second) // all are renewed together by now
	before := size()
	traced.mu.Lock()
	traced.times = nil
	traced.mu.Unlock()
	began := time.Now()
	for b.Loop() {
		<-time.After(15 * time.Second)
	}
	took := time.Since(began)
	traced.mu.Lock()
	times := traced.times
	traced.mu.Unlock()
	for _, l := range leases {
		if l == nil || l.Err() != nil {
			b.Fatalf("lost: %v", l.Err())
		}
	}
	var total, most time.Duration
	for _, t := range times {
		total += t
		most = max(most, t)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(len(times))/took.Seconds(), "renewals/s")
	b.ReportMetric(float64(median(times).Microseconds())/1000, "ms/renewal")
	b.ReportMetric(float64(most.Microseconds())/1000, "ms/slowest")
	b.ReportMetric(100*total.Seconds()/took.Seconds(), "%busy")
	b.ReportMetric(float64(size())/float64(before), "growth")
	b.Logf("%s", fmt.Sprint(len(times), " statements for ", n, " leases in ", took))
}
