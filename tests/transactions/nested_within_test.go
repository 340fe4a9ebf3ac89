package transactions_test

import (
	"context"
	"errors"
	"maps"
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

// GORM does not send the way back to a savepoint when the context of the nested transaction has ended, and drops the error. gormlock sends it,
// whoever began the nested one, and whether the end of the outer one is seen or not. What the outer one did is stored.
func TestNested_whoseContextEnds(t *testing.T) {
	t.Parallel()
	ways := maps.Clone(stand.Unseen)
	ways["seen"] = func(t *testing.T) (*gorm.DB, stand.Transacting) {
		t.Helper()
		db := stand.OpenLined(t, gormlock.New())
		return db, func(fn func(tx *gorm.DB) error) error { return db.Transaction(fn) }
	}
	ways["in SQLite"] = func(t *testing.T) (*gorm.DB, stand.Transacting) {
		t.Helper()
		db := stand.OnSQLite(t, []any{&stand.Account{}})
		return db, func(fn func(tx *gorm.DB) error) error {
			return db.Connection(func(c *gorm.DB) error { return c.Transaction(fn) })
		}
	}
	for way, open := range ways {
		for name, nest := range map[string]func(tx *gorm.DB, fn func(tx *gorm.DB) error) error{
			"GORM's":      func(tx *gorm.DB, fn func(tx *gorm.DB) error) error { return tx.Transaction(fn) },
			"Transaction": func(tx *gorm.DB, fn func(tx *gorm.DB) error) error { return gormlock.Transaction(tx, fn) },
		} {
			for before, ends := range map[string]func(cancel func()){"ended before": func(cancel func()) { cancel() }, "ends": func(func()) {}} {
				t.Run(way+"/"+name+"/"+before, func(t *testing.T) {
					t.Parallel()
					db, within := open(t)
					rows := []stand.Account{{Balance: 1}, {Balance: 1}}
					stand.MustDo(t, db.Create(&rows))
					err := within(func(tx *gorm.DB) error {
						stand.MustDo(t, tx.Model(&stand.Account{}).Where("id = ?", rows[1].ID).Update("balance", 2))
						ctx, cancel := context.WithCancel(t.Context())
						ends(cancel)
						err := nest(tx.WithContext(ctx), func(tx *gorm.DB) error {
							_ = tx.Model(&stand.Account{}).Where("id = ?", rows[0].ID).Update("balance", 7)
							cancel()
							return ctx.Err()
						})
						if !errors.Is(err, context.Canceled) {
							t.Errorf("the inner call: %v", err)
						}
						return nil
					})
					rolledBack := err != nil && way != "seen" && before == "ended before" // nobody knows whether there is a savepoint
					first, second := stand.Row[stand.Account](t, db, rows[0].ID), stand.Row[stand.Account](t, db, rows[1].ID)
					if first.Balance != 1 || (err != nil || second.Balance != 2) && !rolledBack {
						t.Errorf("%v, stored %+v and %+v", err, first, second)
					}
				})
			}
		}
	}
}
