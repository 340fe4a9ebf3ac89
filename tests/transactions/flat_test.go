package transactions_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// gormlock.Transaction inside of another one is a savepoint, also if GORM is to make none: what its function stored before it failed is
// not committed.
func TestTransaction_withoutNestedOnes(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&stand.Account{}}, func(t *testing.T, db *gorm.DB) {
		a := stand.Made(t, db, stand.Account{Balance: 1})
		fails := errors.New("fails")
		flat := db.Session(&gorm.Session{DisableNestedTransaction: true})
		stand.Must(t, gormlock.Transaction(flat, func(tx *gorm.DB) error {
			err := gormlock.Transaction(tx, func(inner *gorm.DB) error {
				stand.Equal(t, "the caller's choice", inner.DisableNestedTransaction, true)
				if err := inner.Model(&a).Update("balance", 2).Error; err != nil {
					return err
				}
				return fails
			})
			if !errors.Is(err, fails) {
				t.Error(err)
			}
			stand.Equal(t, "the caller's choice, afterwards", tx.DisableNestedTransaction, true)
			return tx.Model(&a).Update("note", "outer").Error
		}))
		row := stand.Row[stand.Account](t, db, a.ID)
		stand.Equal(t, "row", row, stand.Account{ID: a.ID, Balance: 1, Note: "outer", Version: 1})
		stand.Equal(t, "struct", a, row)
		stand.Equal(t, "the session", flat.DisableNestedTransaction, true)
	})
}
