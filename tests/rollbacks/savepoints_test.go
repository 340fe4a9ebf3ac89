package rollbacks_test

import (
	"errors"
	"runtime"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// imports store rows one by one, each in a savepoint, and not all of them fit.
var imports = map[string]func(tx *gorm.DB, i int64) error{
	"none fits": func(tx *gorm.DB, _ int64) error {
		return errors.Join(tx.Create(&stand.Account{Balance: 1}).Error, errUndo)
	},
	"a tenth does not fit": func(tx *gorm.DB, i int64) error {
		err := tx.Create(&stand.Account{Balance: 1}).Error
		if i%10 == 0 {
			return errUndo
		}
		return err
	},
	"a row is read before": func(tx *gorm.DB, _ int64) error {
		var one stand.Account
		return errors.Join(tx.First(&one, 1).Error, errUndo)
	},
	"a row is changed before": func(tx *gorm.DB, i int64) error {
		one := stand.Account{ID: 1, Version: 1}
		return errors.Join(tx.Model(&one).Update("balance", i).Error, errUndo)
	},
}

// A rollback to a savepoint costs what it takes back, not what the transaction has done before.
func TestSavepoints_costAsMuchLateAsEarly(t *testing.T) { //nolint:paralleltest // it counts allocations
	for name, store := range imports {
		t.Run(name, func(t *testing.T) {
			db := stand.Versioned(t, []any{&stand.Account{}})
			stand.MustDo(t, db.Create(&stand.Account{ID: 1, Balance: 10}))
			stand.MustDo(t, db.Exec("ALTER SEQUENCE accounts_id_seq RESTART WITH 100"))
			cost := func(rows int64) (allocated uint64) {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				err := db.Transaction(func(tx *gorm.DB) error {
					stand.MustDo(t, tx.Create(&stand.Account{Balance: 1}))
					for i := range rows {
						_ = tx.Transaction(func(tx *gorm.DB) error { return store(tx, i) })
					}
					return errUndo
				})
				if !errors.Is(err, errUndo) {
					t.Fatal(err)
				}
				runtime.ReadMemStats(&after)
				return after.TotalAlloc - before.TotalAlloc
			}
			cost(10)
			few, many := cost(300), cost(1200)
			if many > 6*few {
				t.Errorf("300 rows take %d bytes, 1200 take %d", few, many)
			}
		})
	}
}
