package roots_test

import (
	"database/sql"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// addUnits writes lines in each way so that the sum of their quantities grows by at most room. o is the root to compare; it is nil
// if the lines do not hold it.
var addUnits = []func(tx *gorm.DB, id int64, o *order, lines []line, room int) error{
	func(tx *gorm.DB, id int64, o *order, _ []line, room int) error { // create
		return tx.Create(&line{Qty: int64(min(room, 2)), OrderID: id, Order: o}).Error
	},
	func(tx *gorm.DB, id int64, o *order, lines []line, room int) error { // bulk
		if len(lines) > room {
			return nil
		}
		return tx.Model(&line{Order: o}).Where("order_id = ?", id).Update("qty", gorm.Expr("qty + 1")).Error
	},
	func(tx *gorm.DB, id int64, o *order, lines []line, room int) error { // bulk, on a column that it changes
		small := slices.DeleteFunc(lines, func(l line) bool { return l.Qty >= 3 })
		if len(small) > room {
			return nil
		}
		return tx.Model(&line{Order: o}).Clauses(clause.Returning{}).Where("order_id = ? AND qty < 3", id).Update("qty", gorm.Expr("qty + 1")).Error
	},
	func(tx *gorm.DB, _ int64, o *order, lines []line, _ int) error { // one, under a condition
		l := lines[rand.IntN(len(lines))] //nolint:gosec // a test
		return tx.Clauses(gormlock.IgnoreVersion()).Model(&line{ID: l.ID, Order: o}).Where("qty < 5").Update("qty", gorm.Expr("qty + 1")).Error
	},
	func(tx *gorm.DB, _ int64, o *order, lines []line, room int) error { // a slice
		lines = lines[:min(room, len(lines))]
		for i := range lines {
			lines[i].Qty++
			lines[i].Order = o
		}
		return tx.Save(&lines).Error
	},
	func(tx *gorm.DB, _ int64, o *order, lines []line, _ int) error { // an upsert under a condition
		l := lines[rand.IntN(len(lines))] //nolint:gosec // a test
		l.Qty, l.Order = l.Qty+1, o
		return tx.Clauses(onlyWhere("lines.qty < 6")).Create(&l).Error
	},
	func(tx *gorm.DB, id int64, o *order, lines []line, _ int) error { // one for another
		if o != nil {
			if err := gormlock.Touch(tx, o); err != nil {
				return err
			}
		}
		if err := tx.Where("order_id = ? AND id = ?", id, lines[0].ID).Delete(&line{}).Error; err != nil {
			return err
		}
		return tx.Create(&line{Qty: lines[0].Qty + 1, OrderID: id}).Error
	},
}

// The sum of the lines of an order never exceeds its limit, in whatever ways they are written beside each other. Where the lines do
// not hold their order it does.
func TestRoot_keepsARuleInEachWay(t *testing.T) {
	t.Parallel()
	const writers, orders, limit = 16, 4, 30
	for name, level := range map[string]sql.IsolationLevel{"read committed": sql.LevelReadCommitted, "repeatable read": sql.LevelRepeatableRead} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, models, pgtest.MaxConns(writers))
			broken := func(compares bool) (broken int) {
				for range orders {
					o := stand.Made(t, db, order{})
					stand.Must(t, db.Create(&line{Qty: 1, OrderID: o.ID}).Error)
					var all sync.WaitGroup
					for w := range writers {
						all.Go(func() {
							for i := range 4 {
								add := addUnits[(w+i*3)%len(addUnits)]
								if err := gormlock.Transaction(db, func(tx *gorm.DB) error {
									var root order // the root first
									if err := tx.First(&root, o.ID).Error; err != nil {
										return err
									}
									var lines []line
									if err := tx.Where("order_id = ?", o.ID).Order("id").Find(&lines).Error; err != nil {
										return err
									}
									room := limit
									for _, l := range lines {
										room -= int(l.Qty)
									}
									if room <= 0 {
										return nil
									}
									held := &root
									if !compares {
										held = nil
									}
									return add(tx, o.ID, held, lines, room)
								}, gormlock.Attempts(100), gormlock.Isolation(level)); err != nil {
									t.Error(err)
								}
							}
						})
					}
					all.Wait()
					var sum int64
					stand.Must(t, db.Model(&line{}).Where("order_id = ?", o.ID).Select("sum(qty)").Scan(&sum).Error)
					if sum > limit {
						broken++
					}
				}
				return broken
			}
			if n := broken(true); n > 0 {
				t.Errorf("the rule was broken in %d of %d orders", n, orders)
			}
			if level != sql.LevelReadCommitted { // where a root named by its key is compared too
				return
			}
			if broken(false) == 0 {
				t.Error("the rule was kept where no root was compared: this test proves nothing")
			}
		})
	}
}
