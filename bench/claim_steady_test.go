package bench

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
)

const (
	steadyClaimers = 8
	steadyWindow   = 5 * time.Second
	steadyWindows  = 6
	steadyJobs     = 2_500_000 // more than are claimed during the run
)

// forQueues are the settings of docs/own-queue.md, which work.Migrate gives its table too.
const forQueues = `ALTER TABLE jobs SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
	autovacuum_analyze_scale_factor = 0.02, autovacuum_analyze_threshold = 5000, autovacuum_vacuum_cost_delay = 0)`

// BenchmarkClaimSteady claims 10 jobs at a time with 8 goroutines for half a minute, and compares its last five seconds with its first. It does so
// with the settings of docs/own-queue.md, where autovacuum looks every second, and with PostgreSQL's defaults.
func BenchmarkClaimSteady(b *testing.B) {
	for _, way := range []struct {
		name, naptime string
		settings      string
		rounds        int
	}{{"documented", "1s", forQueues, 3}, {"default", "1min", "SELECT 1", 1}} {
		b.Run("settings="+way.name, func(b *testing.B) {
			server := pgtest.Fresh(b, pgserver.Setting("autovacuum_naptime", way.naptime), pgserver.Setting("maintenance_work_mem", "256MB"))
			db := pgtest.Open(b, pgtest.Through(server.DSN("postgres")), pgtest.MaxConns(steadyClaimers), pgtest.Plugin(gormlock.New()))
			var ratios, first, last []float64
			for range way.rounds {
				makeJobs(b, db, "", steadyJobs, way.settings)
				each := claimWindows(b, func() (int, error) {
					got, err := gormlock.Claim[job](db, 10, running, ready)
					return len(got), err
				})
				b.Logf("%s: jobs a second in each window: %.0f", way.name, each)
				first, last = append(first, each[0]), append(last, each[steadyWindows-1])
				ratios = append(ratios, each[steadyWindows-1]/each[0])
			}
			for b.Loop() { // the rounds are the loop
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(first), "first-jobs/s")
			b.ReportMetric(median(last), "last-jobs/s")
			reportRatios(b, "ratio", ratios)
		})
	}
}

// claimWindows returns how many jobs per second were claimed in each window.
func claimWindows(b *testing.B, claim func() (int, error)) []float64 {
	b.Helper()
	var counts [steadyWindows]atomic.Int64
	began := time.Now()
	var all sync.WaitGroup
	for range steadyClaimers {
		all.Go(func() {
			for {
				n, err := claim()
				at := int(time.Since(began) / steadyWindow)
				if at >= steadyWindows {
					return
				}
				if err != nil || n == 0 {
					b.Errorf("%d jobs, %v", n, err)
					return
				}
				counts[at].Add(int64(n))
			}
		})
	}
	all.Wait()
	rates := make([]float64, steadyWindows)
	for i := range counts {
		rates[i] = float64(counts[i].Load()) / steadyWindow.Seconds()
	}
	return rates
}
