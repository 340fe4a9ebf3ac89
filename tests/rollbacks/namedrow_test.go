package rollbacks_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// accountForm is an account as a web form has it.
type accountForm struct {
	ID      int64
	Balance int64
	Version int64
}

// An update whose Model only names the model has GORM put the key of the values into that struct. A rollback takes it back there, and not in the
// caller's struct of the same row, which would be saved as a new row then.
func TestRollback_ofAnUpdateThatNamesItsRowInItsValues(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	firsts := map[string]func(tx *gorm.DB, a *stand.Account) error{
		"nothing": func(*gorm.DB, *stand.Account) error { return nil },
		"update":  func(tx *gorm.DB, a *stand.Account) error { return tx.Model(a).Update("balance", 1).Error },
		"save":    func(tx *gorm.DB, a *stand.Account) error { a.Balance++; return tx.Save(a).Error },
		"nested save that is rolled back": func(tx *gorm.DB, a *stand.Account) error {
			_ = tx.Transaction(func(tx *gorm.DB) error {
				a.Balance++
				stand.MustDo(t, tx.Save(a))
				return errors.New("back")
			})
			return nil
		},
	}
	where := func(tx *gorm.DB) *gorm.DB { return tx.Model(&stand.Account{}).Where("id = 1") }
	seconds := map[string]func(tx *gorm.DB, version int64) *gorm.DB{
		"map": func(tx *gorm.DB, version int64) *gorm.DB {
			return where(tx).Updates(map[string]any{"id": int64(1), "balance": 5, "version": version})
		},
		"map without a version": func(tx *gorm.DB, _ int64) *gorm.DB {
			return where(tx).Updates(map[string]any{"id": int64(1), "balance": 5})
		},
		"columns": func(tx *gorm.DB, version int64) *gorm.DB {
			return where(tx).UpdateColumns(map[string]any{"id": int64(1), "balance": 5, "version": version})
		},
		"form":          func(tx *gorm.DB, version int64) *gorm.DB { return where(tx).Updates(&accountForm{1, 5, version}) },
		"form by value": func(tx *gorm.DB, version int64) *gorm.DB { return where(tx).Updates(accountForm{1, 5, version}) },
		"struct": func(tx *gorm.DB, version int64) *gorm.DB {
			return where(tx).Updates(&stand.Account{ID: 1, Balance: 5, Version: version})
		},
		"struct in Where": func(tx *gorm.DB, version int64) *gorm.DB {
			return tx.Model(&stand.Account{}).Where(&stand.Account{ID: 1}).Updates(accountForm{1, 5, version})
		},
		"expected": func(tx *gorm.DB, version int64) *gorm.DB {
			return where(tx).Clauses(gormlock.ExpectVersion(version)).Updates(map[string]any{"id": int64(1), "balance": 5})
		},
	}
	ends := map[string]func(do func(tx *gorm.DB) error) error{
		"a rollback": func(do func(tx *gorm.DB) error) error {
			_ = db.Transaction(func(tx *gorm.DB) error { stand.Must(t, do(tx)); return errors.New("back") })
			return nil
		},
		"Transaction": func(do func(tx *gorm.DB) error) error {
			_ = gormlock.Transaction(db, func(tx *gorm.DB) error { stand.Must(t, do(tx)); return errors.New("back") })
			return nil
		},
		"a savepoint": func(do func(tx *gorm.DB) error) error {
			return db.Transaction(func(tx *gorm.DB) error {
				stand.MustDo(t, tx.SavePoint("a"))
				stand.Must(t, do(tx))
				return tx.RollbackTo("a").Error
			})
		},
	}
	for first, before := range firsts {
		for second, write := range seconds {
			for end, within := range ends {
				stand.MustDo(t, db.Exec("DELETE FROM accounts"))
				stand.MustDo(t, db.Exec("INSERT INTO accounts (id, balance, note) VALUES (1, 0, ''), (2, 0, '')"))
				a := stand.Row[stand.Account](t, db, 1)
				stand.Must(t, within(func(tx *gorm.DB) error {
					if err := before(tx, &a); err != nil {
						return err
					}
					var version int64
					stand.MustDo(t, tx.Raw("SELECT version FROM accounts WHERE id = 1").Scan(&version))
					return write(tx, version).Error
				}))
				a.Balance = 7
				err := db.Save(&a).Error
				if stored := stand.Row[stand.Account](t, db, 1); a.ID != 1 || err == nil && stored.Balance != 7 || err != nil && !errors.Is(err, gormlock.ErrVersionMissing) {
					t.Errorf("%s, %s, %s: %v: %+v, stored %+v", first, second, end, err, a, stored)
				}
			}
		}
	}
}
