package bench

import (
	"fmt"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// window is how long each step of BenchmarkScale lasts, and windows is how often it is measured. Steps are measured in turns, so that a machine
// that is slow for a while affects all of them.
const (
	window  = 200 * time.Millisecond
	windows = 21
)

// step is one size of the work.
type step struct {
	name string
	run  func(until time.Time) int // returns how often it was done
}

// inSteps reports how often per second each step was done, and its ratio to the first step.
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
		reportRatios(b, s.name+"-x", ratios(rates[i], rates[0]))
	}
}

// BenchmarkScale says how much of each feature one server can carry, and how that grows with clients and with what is held. The server syncs to
// disk, as PostgreSQL does by default.
func BenchmarkScale(b *testing.B) {
	server := pgtest.Fresh(b, pgserver.Setting("fsync", "on"), pgserver.Setting("synchronous_commit", "on"), pgserver.Setting("full_page_writes", "on"),
		pgserver.Setting("max_locks_per_transaction", "256")) // room for all session locks that are held at once
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
	byClients(func(row int64) error { return db.Model(&plain[row-1]).Update("balance", row).Error })[2].run(time.Now().Add(3 * window)) // the files of a new server grow first
	b.Run("update", func(b *testing.B) {                                                                                                // without gormlock, for comparison
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
	b.Run("hotkey", func(b *testing.B) { // all clients want one lock
		inSteps(b, byClients(func(row int64) error {
			return gormlock.Transaction(db, func(tx *gorm.DB) error { return tx.Model(&plain[0]).Update("balance", row).Error }, gormlock.Locking(gormlock.Key("account", 0)))
		}))
	})
	b.Run("hotrow", func(b *testing.B) { // all clients change one versioned row, and repeat stale writes
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
}
