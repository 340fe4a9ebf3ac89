package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

const (
	steadyFor  = 60 * time.Second
	steadyLoad = 4000 // jobs per second, enqueued in batches; there is always a backlog
)

// BenchmarkWorkSteady compares the jobs per second in the last four seconds of a minute with those in seconds 2 to 5: without and with a
// transaction that stays open, so that nothing can be vacuumed.
func BenchmarkWorkSteady(b *testing.B) {
	for _, pinned := range []bool{false, true} {
		b.Run(fmt.Sprintf("pinned=%t", pinned), func(b *testing.B) {
			var ratio []float64
			for b.Loop() {
				ratio = append(ratio, steady(b, pinned))
			}
			reportRatios(b, "ratio", ratio)
		})
	}
}

func steady(b *testing.B, pinned bool) float64 {
	b.Helper()
	db := tasks(b, workWorkers+4)
	// As many as can be done in a minute, so that the rate is the worker's.
	const backlog = 20_000
	fill := func(n int) {
		must(b, db.Exec(fmt.Sprintf("INSERT INTO tasks (payload) SELECT repeat('x', 100) FROM generate_series(1, %d)", n)).Error)
	}
	fill(backlog)
	if pinned {
		conn := pgtest.Conn(b)
		for _, text := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT txid_current()"} {
			_, err := conn.Exec(b.Context(), text)
			must(b, err)
		}
		defer func() { _, _ = conn.Exec(b.Context(), "ROLLBACK") }()
	}
	var handled atomic.Int64
	w, err := work.New(db, func(context.Context, *task) error { handled.Add(1); return nil }, work.Workers(workWorkers))
	must(b, err)
	ctx, stop := context.WithCancel(b.Context())
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	began, before := time.Now(), int64(0)
	var seconds []float64
	filled := int64(backlog)
	for tick := time.NewTicker(50 * time.Millisecond); time.Since(began) < steadyFor; <-tick.C {
		if missing := handled.Load() + backlog - filled; missing > 1000 {
			fill(int(missing))
			filled += missing
		}
		if s := int(time.Since(began).Seconds()); s > len(seconds) {
			now := handled.Load()
			seconds, before = append(seconds, float64(now-before)), now
		}
	}
	stop()
	must(b, <-over)
	first, last := median(seconds[1:5]), median(seconds[len(seconds)-4:])
	b.Logf("pinned %t: %.0f jobs a second, then %.0f; each second %.0f", pinned, first, last, seconds)
	b.ReportMetric(first, "first-jobs/s")
	b.ReportMetric(last, "last-jobs/s")
	return last / first
}

// BenchmarkWorkLatency measures the time from the begin of the enqueuing transaction to the start of the handler on an idle system, with package
// work and with River's own client.
func BenchmarkWorkLatency(b *testing.B) {
	db := tasks(b, workWorkers+4)
	r := newRiverQueue(b, workWorkers+4)
	begun := make(chan time.Time, 1)
	w, err := work.New(db, func(context.Context, *task) error { begun <- time.Now(); return nil }, work.Workers(workWorkers))
	must(b, err)
	ctx, stop := context.WithCancel(b.Context())
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	riverBegun := make(chan time.Time, 1)
	client, stopRiver := startRiver(b, r.pool, func() { riverBegun <- time.Now() })
	wait := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-b.Context().Done():
		}
	}
	pause := func() { wait(20 * time.Millisecond) }
	wait(2 * time.Second) // both listen by then
	var ours, rivers []time.Duration
	for b.Loop() {
		for range 100 {
			pause()
			began := time.Now()
			must(b, db.Transaction(func(tx *gorm.DB) error { return work.Enqueue(tx, &task{Payload: "x"}) }))
			ours = append(ours, (<-begun).Sub(began))
			pause()
			began = time.Now()
			_, err := client.Insert(b.Context(), riverArgs{"x"}, nil)
			must(b, err)
			rivers = append(rivers, (<-riverBegun).Sub(began))
		}
	}
	stop()
	must(b, <-over)
	stopRiver()
	slices.Sort(ours)
	b.ReportMetric(us(median(ours)), "work-us")
	b.ReportMetric(us(median(rivers)), "river-us")
	b.ReportMetric(float64(ours[len(ours)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(median(ours))/float64(median(rivers)), "x-river")
}

// BenchmarkWorkEnqueue compares Enqueue in 100 concurrent transactions with the bare insert by GORM.
func BenchmarkWorkEnqueue(b *testing.B) {
	db := tasks(b, 20)
	run := func(insert func(tx *gorm.DB) error) func(until time.Time) int {
		return func(until time.Time) int {
			var all sync.WaitGroup
			var n atomic.Int64
			for range 100 {
				all.Go(func() {
					for time.Now().Before(until) {
						must(b, db.Transaction(insert))
						n.Add(1)
					}
				})
			}
			all.Wait()
			return int(n.Load())
		}
	}
	paired(b, 500*time.Millisecond,
		run(func(tx *gorm.DB) error { return tx.Create(&task{Payload: "x"}).Error }),
		run(func(tx *gorm.DB) error { return work.Enqueue(tx, &task{Payload: "x"}) }))
}

// BenchmarkWorkValues compares jobs per second of a worker without these options with OnePer over 10,000 values, and with FairBy where one value
// has a backlog of 100,000.
func BenchmarkWorkValues(b *testing.B) {
	for name, opts := range map[string][]work.Option{"OnePer": {work.OnePer("account_id")}, "FairBy": {work.FairBy("account_id")}} {
		b.Run(name, func(b *testing.B) {
			db, plain := tasks(b, workWorkers+4, opts...), tasks(b, workWorkers+4)
			account := map[string]string{"OnePer": "i % 10000", "FairBy": "CASE WHEN i % 100 = 0 THEN i % 1000 ELSE 1 END"}[name]
			var ours, plains []float64
			for b.Loop() {
				for range valueRounds {
					fillTasks(b, db, workJobs, account)
					ours = append(ours, workOff(b, db, workJobs, opts...))
					fillTasks(b, plain, workJobs, account)
					plains = append(plains, workOff(b, plain, workJobs))
				}
			}
			reportRatios(b, "ratio", ratios(ours, plains))
		})
	}
}
