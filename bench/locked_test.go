package bench

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// network is the round trip to a server in the same data centre.
const network = 500 * time.Microsecond

// BenchmarkLocked compares one lock and one update in a transaction with the same in GORM without gormlock: a transaction, SELECT
// pg_advisory_xact_lock, the update. Each goroutine has its own key and row.
func BenchmarkLocked(b *testing.B) {
	dsn := pgtest.SchemaDSN(b)
	for _, far := range []bool{false, true} {
		with, without := []pgtest.Option{pgtest.Through(dsn), pgtest.MaxConns(8)}, ""
		if far {
			with, without = append(with, distant(b, dsn, network)), "/network"
		}
		plain, ours := pgtest.Open(b, with...), pgtest.Open(b, append(with, pgtest.Plugin(gormlock.New()))...)
		accountsFor(b, plain, 8)
		byHand := func(row int64) error {
			return plain.Transaction(func(tx *gorm.DB) error {
				id, _ := gormlock.Key("account", row).Int64()
				if err := tx.Exec("SELECT pg_advisory_xact_lock(?)", id).Error; err != nil {
					return err
				}
				return tx.Model(&plainAccount{}).Where("id = ?", row).Update("balance", gorm.Expr("balance + 1")).Error
			})
		}
		update := func(tx *gorm.DB, row int64) error {
			return tx.Model(&plainAccount{}).Where("id = ?", row).Update("balance", gorm.Expr("balance + 1")).Error
		}
		for _, way := range []struct {
			name string
			do   func(row int64) error
		}{
			{"Transaction", func(row int64) error {
				return gormlock.Transaction(ours, func(tx *gorm.DB) error { return update(tx, row) }, gormlock.Locking(gormlock.Key("account", row)))
			}},
			{"scope", func(row int64) error {
				return update(ours.Scopes(gormlock.WithXactLock(gormlock.Key("account", row))), row)
			}},
		} {
			for _, n := range []int{1, 8} {
				b.Run(fmt.Sprintf("%s/goroutines=%d%s", way.name, n, without), func(b *testing.B) {
					paired(b, 200*time.Millisecond,
						func(until time.Time) int { return each(b, n, until, byHand) },
						func(until time.Time) int { return each(b, n, until, way.do) })
				})
			}
		}
	}
}

// BenchmarkHotRow compares LockRow, a change and a Save of one row by 8 goroutines with SELECT … FOR UPDATE and an update by hand.
func BenchmarkHotRow(b *testing.B) {
	dsn := pgtest.SchemaDSN(b)
	plain := pgtest.Open(b, pgtest.Through(dsn), pgtest.MaxConns(8))
	ours := pgtest.Open(b, pgtest.Through(dsn), pgtest.MaxConns(8), pgtest.Plugin(gormlock.New()))
	accountsFor(b, plain, 1)
	byHand := func(int64) error {
		return plain.Transaction(func(tx *gorm.DB) error {
			var a plainAccount
			if err := tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&a, 1).Error; err != nil {
				return err
			}
			return tx.Model(&a).Update("balance", a.Balance+1).Error
		})
	}
	byLockRow := func(int64) error {
		return ours.Transaction(func(tx *gorm.DB) error {
			a := plainAccount{ID: 1}
			if err := gormlock.LockRow(tx, &a); err != nil {
				return err
			}
			return tx.Model(&a).Update("balance", a.Balance+1).Error
		})
	}
	paired(b, 200*time.Millisecond,
		func(until time.Time) int { return each(b, 8, until, byHand) },
		func(until time.Time) int { return each(b, 8, until, byLockRow) })
}

// accountsFor makes the table with this many rows.
func accountsFor(b *testing.B, db *gorm.DB, rows int) {
	b.Helper()
	must(b, db.AutoMigrate(&plainAccount{}))
	must(b, db.Exec("TRUNCATE plain_accounts").Error)
	for i := range rows {
		must(b, db.Create(&plainAccount{ID: int64(i + 1)}).Error)
	}
}

// each counts how often n goroutines do it, each with its own row.
func each(b *testing.B, n int, until time.Time, do func(row int64) error) int {
	var over atomic.Bool
	time.AfterFunc(time.Until(until), func() { over.Store(true) })
	var all sync.WaitGroup
	var done atomic.Int64
	for i := range n {
		all.Go(func() {
			for !over.Load() {
				if err := do(int64(i + 1)); err != nil {
					b.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	all.Wait()
	return int(done.Load())
}
