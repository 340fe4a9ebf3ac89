package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

const (
	drainJobs    = 100_000
	drainWorkers = 16
	drainBatch   = 100
	drainRounds  = 7 // of each side, each time
)

// BenchmarkDrain lets 16 workers claim 100,000 jobs in batches of 100: with Claim, with the same statement by hand, and with the statement with
// which River fetches jobs.
func BenchmarkDrain(b *testing.B) {
	db, pool := open(b, drainWorkers)
	river := newRiver(b)
	bareSQL := fmt.Sprintf(bareClaim, drainBatch)
	fill := func(b *testing.B) { jobs(b, db, drainJobs) }
	ways := []struct {
		name  string
		fill  func(*testing.B)
		claim func(ctx context.Context, worker int) (int, error)
	}{
		{"claim", fill, func(ctx context.Context, _ int) (int, error) {
			jobs, err := gormlock.Claim[job](db.WithContext(ctx), drainBatch, running, ready)
			return len(jobs), err
		}},
		{"bare", fill, func(ctx context.Context, _ int) (int, error) {
			jobs, err := bare(ctx, pool, bareSQL)
			return len(jobs), err
		}},
		{"river", river.fill, river.claim},
	}
	rates := make([][]float64, len(ways))
	round := 0
	for b.Loop() {
		for range drainRounds {
			for i := range ways {
				way := (round + i) % len(ways)
				b.StopTimer()
				ways[way].fill(b)
				b.StartTimer()
				rates[way] = append(rates[way], drain(b, ways[way].claim))
			}
			round++
		}
	}
	for i, way := range ways {
		b.ReportMetric(median(rates[i]), way.name+"-jobs/s")
	}
	reportRatios(b, "x-bare", ratios(rates[0], rates[1]))
	reportRatios(b, "x-river", ratios(rates[0], rates[2]))
}

// drain returns how many jobs per second were claimed.
func drain(b *testing.B, claim func(ctx context.Context, worker int) (int, error)) float64 {
	b.Helper()
	var all sync.WaitGroup
	claimed := make([]int, drainWorkers)
	errs := make([]error, drainWorkers)
	began := time.Now()
	for worker := range drainWorkers {
		all.Go(func() {
			for {
				n, err := claim(b.Context(), worker)
				claimed[worker] += n
				if errs[worker] = err; err != nil || n == 0 {
					return
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	sum := 0
	for worker := range drainWorkers {
		if errs[worker] != nil {
			b.Fatal(errs[worker])
		}
		sum += claimed[worker]
	}
	if sum != drainJobs {
		b.Fatalf("%d of %d jobs were claimed", sum, drainJobs)
	}
	return drainJobs / took.Seconds()
}

// riverFetch is River's table and the statement with which its client fetches jobs, without the rest of River.
type riverFetch struct {
	pool     *pgxpool.Pool
	executor riverdriver.Executor
}

func newRiver(b *testing.B) *riverFetch {
	b.Helper()
	config, err := pgxpool.ParseConfig(pgtest.Database(b))
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = drainWorkers
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := migrator.Migrate(b.Context(), rivermigrate.DirectionUp, nil); err != nil {
		b.Fatal(err)
	}
	return &riverFetch{pool, driver.GetExecutor()}
}

func (r *riverFetch) fill(b *testing.B) {
	b.Helper()
	for _, text := range []string{
		"TRUNCATE river_job",
		fmt.Sprintf(`INSERT INTO river_job (kind, args, max_attempts, priority, state, scheduled_at)
			SELECT 'work', jsonb_build_object('x', repeat('x', 100)), 25, 1 + i %% 4, 'available', now() - interval '1 second' FROM generate_series(1, %d) i`, drainJobs),
		"VACUUM ANALYZE river_job",
	} {
		if _, err := r.pool.Exec(b.Context(), text); err != nil {
			b.Fatal(err)
		}
	}
}

func (r *riverFetch) claim(ctx context.Context, worker int) (int, error) {
	result, err := r.executor.JobGetAvailable(ctx, &riverdriver.JobGetAvailableParams{
		ClientID: fmt.Sprint("worker", worker), MaxAttemptedBy: 100, MaxToLock: drainBatch, Queue: "default",
	})
	if err != nil {
		return 0, err
	}
	return len(result.Jobs), nil
}
