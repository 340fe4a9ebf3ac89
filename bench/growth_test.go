package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/sessionlock"
)

// scaleRows saves slices of versioned rows, and reports rows per second.
func scaleRows(b *testing.B, db *gorm.DB) {
	batches := db.Session(&gorm.Session{CreateBatchSize: 1000})
	var steps []step
	first := int64(1000)
	for _, n := range []int{1, 10, 100, 1000, 10_000} {
		rows := make([]account, n)
		for i := range rows {
			rows[i].ID = first
			first++
		}
		must(b, batches.Create(&rows).Error)
		steps = append(steps, step{fmt.Sprintf("rows=%d", n), func(until time.Time) int {
			saved := 0
			for time.Now().Before(until) {
				for i := range rows {
					rows[i].Balance++
				}
				must(b, batches.Save(&rows).Error)
				saved += n
			}
			return saved
		}})
	}
	inSteps(b, steps)
}

// managers are open until all steps have run.
type managers []interface {
	Close(ctx context.Context) error
}

func (open managers) close() {
	for _, m := range open {
		_ = m.Close(context.Background())
	}
}

// scaleSessionLocks takes and releases one lock with 8 goroutines, in managers that already hold a number of locks.
func scaleSessionLocks(b *testing.B, dsn string) {
	var steps []step
	var open managers
	defer func() { open.close() }()
	for _, n := range []int{1, 100, 1000, 5000, 10_000} {
		m, err := sessionlock.Open(b.Context(), dsn, sessionlock.MaxLocks(40_000))
		must(b, err)
		open = append(open, m)
		var all sync.WaitGroup
		var next atomic.Int64
		for range 64 {
			all.Go(func() {
				for i := next.Add(1); i <= int64(n); i = next.Add(1) {
					_, err := m.Acquire(b.Context(), gormlock.Key("held", n, i))
					must(b, err)
				}
			})
		}
		all.Wait()
		steps = append(steps, step{fmt.Sprintf("held=%d", n), func(until time.Time) int { return crowd(b, 8, until, managed(m)) }})
	}
	inSteps(b, steps)
}

// fillLeases inserts leases of others, held for a day.
const fillLeases = `INSERT INTO %[1]s (space, id, name, holder, owner, acquired_at, expires_at, wanted)
	SELECT 1, i, 'other/' || i, 'other', 'other', now(), now() + interval '1 day', false FROM generate_series(1, %[2]d) i`

// scaleLeases takes and releases one lease with 8 goroutines, in tables with a number of other leases.
func scaleLeases(b *testing.B, dsn string) {
	pool := leasePool(b, dsn)
	var steps []step
	var open managers
	defer func() { open.close() }()
	for _, n := range []int{1, 1000, 10_000, 100_000} {
		table := fmt.Sprintf("leases_%d", n)
		must(b, lease.Migrate(b.Context(), pool, lease.Table(table)))
		_, err := pool.ExecContext(b.Context(), fmt.Sprintf(fillLeases, table, n))
		must(b, err)
		_, err = pool.ExecContext(b.Context(), "ANALYZE "+table)
		must(b, err)
		m, err := lease.New(b.Context(), pool, lease.Table(table))
		must(b, err)
		open = append(open, m)
		steps = append(steps, step{fmt.Sprintf("others=%d", n), func(until time.Time) int { return crowd(b, 8, until, leased(m)) }})
	}
	inSteps(b, steps)
}

// BenchmarkClaimGrowth claims 10 of ten thousand, of a million and of ten million rows, with Claim and by hand, all in turns. The tables are
// unlogged, so that making ten million rows takes less than a minute. That does not affect the index of a claim.
func BenchmarkClaimGrowth(b *testing.B) {
	const rounds = 31 // of 2 × 10 claims, which leave a fifth of the smallest table
	sizes := []int{10_000, 1_000_000, 10_000_000}
	ours, bares := make([][]float64, len(sizes)), make([][]float64, len(sizes))
	claims := make([]func() (int, error), len(sizes))
	byHand := make([]func() (int, error), len(sizes))
	bareSQL := fmt.Sprintf(bareClaim, 10)
	for i, size := range sizes {
		db, pool := open(b, 1)
		must(b, db.Exec("SET maintenance_work_mem = '512MB'").Error)
		makeJobs(b, db, "UNLOGGED", size, "SELECT 1")
		claims[i] = func() (int, error) {
			jobs, err := gormlock.Claim[job](db, 10, running, ready)
			return len(jobs), err
		}
		byHand[i] = func() (int, error) {
			jobs, err := bare(db.Statement.Context, pool, bareSQL)
			return len(jobs), err
		}
	}
	for round := range rounds + 1 {
		for i := range sizes {
			our, bare := us(timeTurn(b, 10, claims[i])), us(timeTurn(b, 10, byHand[i]))
			if round > 0 { // the first round prepares the statements
				ours[i], bares[i] = append(ours[i], our), append(bares[i], bare)
			}
		}
	}
	for b.Loop() { // the rounds are the loop
	}
	b.ReportMetric(0, "ns/op")
	for i, size := range sizes {
		unit := fmt.Sprintf("ready=%d", size)
		b.ReportMetric(median(ours[i]), unit+"-claim-µs")
		b.ReportMetric(median(bares[i]), unit+"-bare-µs")
		b.ReportMetric(1e6/median(ours[i]), unit+"/s")
		b.ReportMetric(median(ratios(ours[0], ours[i])), unit+"-x")
		reportRatios(b, unit+"-x-small", ratios(ours[i], ours[0]))
		reportRatios(b, unit+"-x-bare", ratios(ours[i], bares[i]))
	}
}

// BenchmarkSlices updates slices of versioned rows, and the same slices of a model without the tag, in turns: one statement each.
func BenchmarkSlices(b *testing.B) {
	db, _ := open(b, 1)
	must(b, db.AutoMigrate(&plainAccount{}, &account{}))
	batches := db.Session(&gorm.Session{CreateBatchSize: 1000})
	var smallest float64 // seconds per row
	for _, n := range []int{10, 1000, 10_000, 50_000} {
		b.Run(fmt.Sprintf("rows=%d", n), func(b *testing.B) {
			plain, versioned := make([]plainAccount, n), make([]account, n)
			must(b, db.Exec("TRUNCATE plain_accounts, accounts").Error)
			must(b, batches.Create(&plain).Error)
			must(b, batches.Create(&versioned).Error)
			must(b, db.Exec("ANALYZE plain_accounts, accounts").Error)
			peers, ours := alternate(b, 21, max(1, 100/n),
				func() error { return db.Model(&plain).Update("balance", gorm.Expr("balance + 1")).Error },
				func() error { return db.Model(&versioned).Update("balance", gorm.Expr("balance + 1")).Error })
			for b.Loop() { // the rounds are the loop
			}
			reportTimes(b, peers, ours)
			if smallest == 0 {
				smallest = median(ours) / float64(n)
			}
			each := make([]float64, len(ours))
			for i := range ours {
				each[i] = ours[i] / float64(n) / smallest
			}
			reportRatios(b, "x-small", each)
		})
	}
}
