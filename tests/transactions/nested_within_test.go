package transactions_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// Within bounds a call inside of another transaction too, whatever it was doing when its time was over. What it did is rolled back; the outer
// transaction goes on.
func TestWithin_nested(t *testing.T) {
	t.Parallel()
	const within = 100 * time.Millisecond
	for name, last := range map[string]func(tx *gorm.DB) error{
		"elsewhere": func(tx *gorm.DB) error { <-tx.Statement.Context.Done(); return nil },
		"said so":   func(tx *gorm.DB) error { <-tx.Statement.Context.Done(); return tx.Statement.Context.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, a := stand.Stored(t, stand.Account{Balance: 1})
			b := a
			stand.Must(t, gormlock.Transaction(db, func(tx *gorm.DB) error {
				err := gormlock.Transaction(tx, func(tx *gorm.DB) error {
					b.Balance = 7
					if err := tx.Save(&b).Error; err != nil {
						return err
					}
					return last(tx)
				}, gormlock.Within(within))
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("the inner call: %v", err)
				}
				return tx.Model(&a).Update("balance", gorm.Expr("balance + 2")).Error
			}))
			if row := stand.Row[stand.Account](t, db, a.ID); row.Balance != 3 {
				t.Errorf("stored %+v", row)
			}
			if b.Version != a.Version-1 {
				t.Errorf("the struct of the inner call is at %d", b.Version)
			}
		})
	}
}

// GORM does not send the way back to a savepoint when the context of the nested transaction has ended, and drops the error. What the nested one
// did would be committed: then the outer transaction can only be rolled back.
func TestNested_whoseContextEnds(t *testing.T) {
	t.Parallel()
	for name, nest := range map[string]func(tx *gorm.DB, fn func(tx *gorm.DB) error) error{
		"GORM's":      func(tx *gorm.DB, fn func(tx *gorm.DB) error) error { return tx.Transaction(fn) },
		"Transaction": func(tx *gorm.DB, fn func(tx *gorm.DB) error) error { return gormlock.Transaction(tx, fn) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, a := stand.Stored(t, stand.Account{Balance: 1})
			err := db.Transaction(func(tx *gorm.DB) error {
				ctx, cancel := context.WithCancel(t.Context())
				err := nest(tx.WithContext(ctx), func(tx *gorm.DB) error {
					b := a
					b.Balance = 7
					stand.Must(t, tx.Save(&b).Error)
					cancel()
					return ctx.Err()
				})
				if !errors.Is(err, context.Canceled) {
					t.Errorf("the inner call: %v", err)
				}
				return nil
			})
			if row := stand.Row[stand.Account](t, db, a.ID); row.Balance != 1 {
				t.Errorf("stored %+v", row)
			}
			if goesOn := name == "Transaction"; goesOn != (err == nil) {
				t.Errorf("the outer transaction: %v", err)
			}
			a.Balance++
			stand.MustDo(t, db.Save(&a))
		})
	}
}

func TestNested_whoseContextEndsUnseen(t *testing.T) {
	t.Parallel()
	for name, open := range unseen {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, within := open(t)
			a := stand.Made(t, db, stand.Account{Balance: 1})
			err := within(func(tx *gorm.DB) error {
				ctx, cancel := context.WithCancel(t.Context())
				_ = tx.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
					stand.MustDo(t, tx.Model(&stand.Account{}).Where("id = ?", a.ID).Update("balance", 7))
					cancel()
					return ctx.Err()
				})
				return nil
			})
			if row := stand.Row[stand.Account](t, db, a.ID); row.Balance != 1 || err == nil {
				t.Errorf("%v, stored %+v", err, row)
			}
		})
	}
}
