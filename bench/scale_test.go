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
	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/sessionlock"
)

// window is how long each step of BenchmarkScale lasts, and windows how often it is measured: in turns, so that a machine that
// is slow for a while is slow for all of them.
const (
	window  = 300 * time.Millisecond
	windows = 9
)

// step is one size of the work.
type step struct {
	name string
	run  func(until time.Time) int // how often it was done
}

// inSteps reports how often a second each step was done, and its ratio to the first one.
func inSteps(b *testing.B, steps []step) {
	b.Helper()
	rates := make([][]float64, len(steps))
	for range windows {
		for i, s := range steps {
			began := time.Now()
			n := s.run(began.Add(window))
			rates[i] = append(rates[i], float64(n)/time.Since(began).Seconds())
		}
	}
	for b.Loop() { // the windows are the loop
	}
	b.ReportMetric(0, "ns/op")
	for i, s := range steps {
		b.ReportMetric(median(rates[i]), s.name+"/s")
		b.ReportMetric(median(ratios(rates[i], rates[0])), s.name+"-x")
	}
}

// BenchmarkScale says what one server carries of each feature, and how that grows with clients and with what is held. The
// server syncs to disk as PostgreSQL does by default.
func BenchmarkScale(b *testing.B) {
	server := pgtest.Fresh(b, pgserver.Setting("fsync", "on"), pgserver.Setting("synchronous_commit", "on"), pgserver.Setting("full_page_writes", "on"))
	dsn := server.DSN("postgres")
	const most = 64
	db := pgtest.Open(b, pgtest.Through(dsn), pgtest.MaxConns(most), pgtest.Plugin(gormlock.New()))
	must(b, db.AutoMigrate(&plainAccount{}, &account{}))
	accounts := make([]account, most)
	plain := make([]plainAccount, most)
	for i := range accounts {
		accounts[i].ID, plain[i].ID = int64(i+1), int64(i+1)
	}
	must(b, db.Create(&accounts).Error)
	must(b, db.Create(&plain).Error)
	byClients := func(do func(row int64) error) []step {
		var steps []step
		for _, n := range []int{1, 8, most} {
			steps = append(steps, step{fmt.Sprintf("clients=%d", n), func(until time.Time) int { return each(b, n, until, do) }})
		}
		return steps
	}
	byClients(func(row int64) error { return db.Model(&plain[row-1]).Update("balance", row).Error })[2].run(time.Now().Add(3 * window)) // the files of a new server grow
	b.Run("update", func(b *testing.B) {                                                                                                // without gormlock's help, to compare with
		inSteps(b, byClients(func(row int64) error { return db.Model(&plain[row-1]).Update("balance", row).Error }))
	})
	b.Run("versioned", func(b *testing.B) {
		inSteps(b, byClients(func(row int64) error { return db.Model(&accounts[row-1]).Update("balance", row).Error }))
	})
	b.Run("xactlock", func(b *testing.B) {
		inSteps(b, byClients(func(row int64) error {
			return gormlock.Transaction(db, func(tx *gorm.DB) error { return tx.Model(&plain[row-1]).Update("balance", row).Error }, gormlock.Locking(gormlock.Key("account", row)))
		}))
	})
	b.Run("hotkey", func(b *testing.B) { // all of them want one lock
		inSteps(b, byClients(func(row int64) error {
			return gormlock.Transaction(db, func(tx *gorm.DB) error { return tx.Model(&plain[0]).Update("balance", row).Error }, gormlock.Locking(gormlock.Key("account", 0)))
		}))
	})
	b.Run("hotrow", func(b *testing.B) { // all of them change one versioned row, and repeat what was stale
		inSteps(b, byClients(func(int64) error {
			return gormlock.Transaction(db, func(tx *gorm.DB) error {
				var a account
				if err := tx.First(&a, 1).Error; err != nil {
					return err
				}
				return tx.Model(&a).Update("balance", a.Balance+1).Error
			}, gormlock.Attempts(1000))
		}))
	})
	b.Run("rows", func(b *testing.B) { scaleRows(b, db) })
	b.Run("sessionlocks", func(b *testing.B) { scaleSessionLocks(b, dsn) })
	b.Run("leases", func(b *testing.B) { scaleLeases(b, dsn) })
	b.Run("claims", func(b *testing.B) { scaleClaims(b, db) })
}

// scaleRows saves slices of versioned rows: how many rows a second.
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

// scaleSessionLocks takes and gives back one lock while so many are held by the same manager.
func scaleSessionLocks(b *testing.B, dsn string) {
	m, err := sessionlock.Open(b.Context(), dsn, sessionlock.MaxLocks(20_000))
	must(b, err)
	defer func() { _ = m.Close(context.Background()) }()
	held := 0
	hold := func(n int) {
		var all sync.WaitGroup
		var next atomic.Int64
		next.Store(int64(held))
		for range 64 {
			all.Go(func() {
				for i := next.Add(1); i <= int64(n); i = next.Add(1) {
					_, err := m.Acquire(b.Context(), gormlock.Key("held", i))
					must(b, err)
				}
			})
		}
		all.Wait()
		held = n
	}
	one := managed(m)
	for b.Loop() { // the steps are the loop
	}
	b.ReportMetric(0, "ns/op")
	var base float64
	for _, n := range []int{0, 100, 1000, 5000} { // a server with default settings has room for some 6,400 locks
		hold(n)
		var rates []float64
		for range windows {
			began := time.Now()
			rates = append(rates, float64(crowd(b, 8, began.Add(window), one))/time.Since(began).Seconds())
		}
		if n == 0 {
			base = median(rates)
		}
		b.ReportMetric(median(rates), fmt.Sprintf("held=%d/s", n))
		b.ReportMetric(median(rates)/base, fmt.Sprintf("held=%d-x", n))
	}
}

// fillLeases has leases of others: held for a day.
const fillLeases = `INSERT INTO gormlock_lease (space, id, name, holder, owner, acquired_at, expires_at, wanted)
	SELECT 1, i, 'other/' || i, 'other', 'other', now(), now() + interval '1 day', false FROM generate_series($1::bigint, $2::bigint) i`

// scaleLeases takes and gives back one lease while the table has so many others.
func scaleLeases(b *testing.B, dsn string) {
	pool := leasePool(b, dsn)
	m, err := lease.New(b.Context(), pool)
	must(b, err)
	defer func() { _ = m.Close(context.Background()) }()
	for b.Loop() { // the steps are the loop
	}
	b.ReportMetric(0, "ns/op")
	var base float64
	filled := 0
	for _, n := range []int{0, 1000, 10_000, 100_000} {
		_, err := pool.ExecContext(b.Context(), fillLeases, filled+1, n)
		must(b, err)
		_, err = pool.ExecContext(b.Context(), "ANALYZE gormlock_lease")
		must(b, err)
		filled = n
		var rates []float64
		for range windows {
			began := time.Now()
			rates = append(rates, float64(crowd(b, 8, began.Add(window), leased(m)))/time.Since(began).Seconds())
		}
		if n == 0 {
			base = median(rates)
		}
		b.ReportMetric(median(rates), fmt.Sprintf("others=%d/s", n))
		b.ReportMetric(median(rates)/base, fmt.Sprintf("others=%d-x", n))
	}
}

// scaleClaims claims 10 of so many that are ready.
func scaleClaims(b *testing.B, db *gorm.DB) {
	for b.Loop() { // the steps are the loop
	}
	b.ReportMetric(0, "ns/op")
	var base float64
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		var rates []float64
		jobs(b, db, n)
		must(b, db.Exec("CHECKPOINT").Error) // else it comes in the middle of the windows
		for range windows {
			if left := int64(0); db.Raw("SELECT count(*) FROM (SELECT FROM jobs WHERE state = 'ready' LIMIT 5000) some").Scan(&left).Error != nil || left < 5000 {
				jobs(b, db, n)
			}
			began := time.Now()
			claims := 0
			for until := began.Add(window / 3); time.Now().Before(until); claims++ {
				got, err := gormlock.Claim[job](db, 10, running, ready)
				must(b, err)
				if len(got) != 10 {
					b.Fatalf("%d jobs", len(got))
				}
			}
			rates = append(rates, float64(claims)/time.Since(began).Seconds())
		}
		if base == 0 {
			base = median(rates)
		}
		b.ReportMetric(median(rates), fmt.Sprintf("ready=%d/s", n))
		b.ReportMetric(median(rates)/base, fmt.Sprintf("ready=%d-x", n))
	}
}
