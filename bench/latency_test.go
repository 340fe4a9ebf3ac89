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

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// latencyFor is how long each latency is measured.
const latencyFor = 3 * time.Second

// hold runs held while a lock is held.
type hold func(key lockkey.Key, held func()) error

// BenchmarkLatency measures how long a caller waits, with 1 goroutine and with 64 at once: for an uncontended lock, for a lock after its holder
// began to release it, and for a claim of 10.
func BenchmarkLatency(b *testing.B) {
	const crowded = 64
	dsn := pgtest.SchemaDSN(b)
	ways := []struct {
		name string
		open func(b *testing.B) hold
	}{
		{"transaction", func(b *testing.B) hold {
			db := pgtest.Open(b, pgtest.Through(dsn), pgtest.MaxConns(crowded), pgtest.Plugin(gormlock.New()))
			return func(key lockkey.Key, held func()) error {
				return gormlock.Transaction(db, func(*gorm.DB) error { held(); return nil }, gormlock.Locking(key))
			}
		}},
		{"session", func(b *testing.B) hold {
			m, err := sessionlock.Open(b.Context(), dsn)
			must(b, err)
			b.Cleanup(func() { _ = m.Close(context.Background()) })
			return func(key lockkey.Key, held func()) error {
				return m.Do(context.Background(), key, func(context.Context) error { held(); return nil })
			}
		}},
		{"lease", func(b *testing.B) hold {
			m, err := lease.New(b.Context(), leasePool(b, dsn))
			must(b, err)
			b.Cleanup(func() { _ = m.Close(context.Background()) })
			return func(key lockkey.Key, held func()) error {
				return m.Do(context.Background(), key, 30*time.Second, func(context.Context) error { held(); return nil })
			}
		}},
	}
	for _, way := range ways {
		one, other := way.open(b), way.open(b)
		for _, n := range []int{1, crowded} {
			b.Run(fmt.Sprintf("%s/goroutines=%d", way.name, n), func(b *testing.B) { reportLatency(b, free(b, n, one)) })
			if way.name == "lease" { // a waiter in another process asks again after a pause: that is not latency
				continue
			}
			b.Run(fmt.Sprintf("%s-contended/goroutines=%d", way.name, n), func(b *testing.B) { reportLatency(b, contended(b, n, one, other)) })
		}
	}
	db := pgtest.Open(b, pgtest.Through(dsn), pgtest.MaxConns(crowded), pgtest.Plugin(gormlock.New()))
	jobs(b, db, 600_000)
	for _, n := range []int{1, crowded} {
		b.Run(fmt.Sprintf("claim/goroutines=%d", n), func(b *testing.B) {
			reportLatency(b, latencies(n, func(_ int, waited func(time.Duration)) {
				began := time.Now()
				got, err := gormlock.Claim[job](db, 10, running, ready)
				waited(time.Since(began))
				if err != nil || len(got) != 10 {
					b.Errorf("%d jobs, %v", len(got), err)
				}
			}))
		})
	}
}

// free takes uncontended locks: each goroutine has its own key.
func free(b *testing.B, n int, by hold) []time.Duration {
	return latencies(n, func(i int, waited func(time.Duration)) {
		began := time.Now()
		must(b, by(lockkey.Of("latency", i), func() { waited(time.Since(began)) }))
	})
}

// contended lets n goroutines want one lock, and one more that holds it when they come. Half of them act as if they were in another process. A wait
// begins when the holder begins to release, if the next holder was waiting by then.
func contended(b *testing.B, n int, ways ...hold) []time.Duration {
	var released atomic.Int64 // in nanoseconds since began; the holder of the lock writes it
	began := time.Now()
	return latencies(n+1, func(i int, waited func(time.Duration)) {
		asked := time.Since(began)
		must(b, ways[i%len(ways)](lockkey.Of("contended", len(ways)), func() {
			if free := time.Duration(released.Load()); free > asked {
				waited(time.Since(began) - free)
			}
			if n == 1 { // until the other one waits
				<-time.After(2 * time.Millisecond)
			}
			released.Store(int64(time.Since(began)))
		}))
	})
}

// latencies are the waits in what n goroutines do until the time is over.
func latencies(n int, do func(i int, waited func(time.Duration))) []time.Duration {
	until := time.Now().Add(latencyFor)
	each := make([][]time.Duration, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			do(i, func(time.Duration) {}) // the first opens a connection
			for time.Now().Before(until) {
				do(i, func(took time.Duration) { each[i] = append(each[i], took) })
			}
		})
	}
	all.Wait()
	return slices.Concat(each...)
}

// reportLatency reports the median and the 99th percentile, in milliseconds.
func reportLatency(b *testing.B, took []time.Duration) {
	b.Helper()
	if len(took) < 100 {
		b.Fatalf("%d waits", len(took))
	}
	slices.Sort(took)
	for b.Loop() { // the waits are the loop
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(us(median(took))/1000, "median-ms")
	b.ReportMetric(us(took[len(took)*99/100])/1000, "p99-ms")
}
