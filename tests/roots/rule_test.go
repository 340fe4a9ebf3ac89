package roots_test

import (
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// untaggedLine is a line without the tag: the control.
type untaggedLine struct {
	ID      int64
	Qty     int64
	OrderID int64
	Order   *order
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func (untaggedLine) TableName() string { return "lines" }

// The sum of the lines of an order never exceeds its limit, though each writer adds a line of its own. Without the tag it does.
func TestRoot_keepsARuleAboutItsParts(t *testing.T) {
	t.Parallel()
	const writers, orders, limit = 16, 10, 20
	db := stand.Versioned(t, models, pgtest.MaxConns(writers))
	broken := func(add func(tx *gorm.DB, o *order) error) (broken int) {
		for range orders {
			o := stand.Made(t, db, order{})
			var all sync.WaitGroup
			start := make(chan struct{})
			for range writers {
				all.Go(func() {
					<-start
					for range 3 {
						err := gormlock.Transaction(db, func(tx *gorm.DB) error {
							var mine order // the root first
							if err := tx.First(&mine, o.ID).Error; err != nil {
								return err
							}
							var sum int64
							if err := tx.Model(&line{}).Where("order_id = ?", o.ID).Select("coalesce(sum(qty), 0)").Scan(&sum).Error; err != nil {
								return err
							}
							if sum+3 > limit {
								return nil
							}
							return add(tx, &mine)
						}, gormlock.Attempts(50))
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			close(start)
			all.Wait()
			var sum int64
			stand.Must(t, db.Model(&line{}).Where("order_id = ?", o.ID).Select("coalesce(sum(qty), 0)").Scan(&sum).Error)
			if sum < limit-2 {
				t.Errorf("the sum is %d: writers who were refused did not try again", sum)
			}
			if sum > limit {
				broken++
			}
		}
		return broken
	}
	if n := broken(func(tx *gorm.DB, o *order) error { return tx.Create(&line{Qty: 3, OrderID: o.ID, Order: o}).Error }); n > 0 {
		t.Errorf("the rule was broken in %d of %d orders", n, orders)
	}
	n := broken(func(tx *gorm.DB, o *order) error {
		return tx.Create(&untaggedLine{Qty: 3, OrderID: o.ID, Order: o}).Error
	})
	t.Logf("without the tag the rule was broken in %d of %d orders", n, orders)
	if n == 0 {
		t.Error("the rule was kept without the tag: this test proves nothing")
	}
}
