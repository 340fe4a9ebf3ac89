package rollbacks_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// accountOf is a row that was stored and read again, and a write of it by SQL, which no struct shows.
func accountOf(t *testing.T, db *gorm.DB, balance int64) (stored, read stand.Account) {
	t.Helper()
	stored.Balance = balance
	stand.MustDo(t, db.Create(&stored))
	return stored, stand.Row[stand.Account](t, db, stored.ID)
}

func moveOn(t *testing.T, tx *gorm.DB, id int64) {
	t.Helper()
	stand.MustDo(t, tx.Exec("UPDATE accounts SET balance = 50, version = version + 1 WHERE id = ?", id))
}

// A rollback leaves a struct that the program has put where another one of its row was read, if its version is older than all that is rolled back.
func TestRollback_leavesOlderVersionsWhereOthersWereRead(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	for name, body := range map[string]func(tx *gorm.DB, id int64, at *stand.Account){
		"read before the write": func(tx *gorm.DB, id int64, at *stand.Account) {
			var early stand.Account
			stand.MustDo(t, tx.First(&early, id))
			moveOn(t, tx, id)
			stand.MustDo(t, tx.First(at, id))
			*at = early
		},
		"where only the key was read": func(tx *gorm.DB, id int64, at *stand.Account) {
			before := *at
			*at = stand.Account{}
			moveOn(t, tx, id)
			stand.MustDo(t, tx.Select("id").First(at, id))
			*at = before
		},
		"beside what ScanRows reads": func(tx *gorm.DB, id int64, at *stand.Account) {
			stand.MustDo(t, tx.First(at, id))
			moveOn(t, tx, id)
			rows, err := tx.Model(&stand.Account{}).Where("id = ?", id).Rows()
			stand.Must(t, err)
			defer func() { stand.Must(t, rows.Close()) }()
			var late stand.Account
			for rows.Next() {
				stand.Must(t, tx.ScanRows(rows, &late))
			}
			stand.Must(t, rows.Err())
		},
	} {
		stored, at := accountOf(t, db, 5)
		stand.InTx(t, db, func(tx *gorm.DB) { body(tx, stored.ID, &at) })
		if err := db.Save(&at).Error; err != nil || at.Version != stored.Version+1 {
			t.Errorf("%s: %+v: %v", name, at, err)
		}
	}
}

// Of two structs of one row that hold the same version, one is what a rollback to a savepoint has made it. The rollback of all leaves it so, also
// where something was written before.
func TestRollback_leavesTheOtherStructThatWasTakenBackBefore(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	first, other := accountOf(t, db, 5)
	other.Balance = 6
	stand.MustDo(t, db.Save(&other))
	want, held := other, first
	stand.InTx(t, db, func(tx *gorm.DB) {
		stand.MustDo(t, tx.Create(&stand.Account{}))
		_ = tx.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Model(&other).Update("balance", 7))
			return errUndo
		})
		stand.MustDo(t, tx.Model(&first).Clauses(gormlock.IgnoreVersion()).Updates(stand.Account{Balance: 9, Note: "blind"}))
	})
	if other != want || first != held {
		t.Errorf("the other is %+v, want %+v; the first is %+v, want %+v", other, want, first, held)
	}
	stand.MustDo(t, db.Model(&other).Update("balance", 10))
}

// A struct of a row of one table was overwritten by one that was read in another table. It has that one's version, which is rolled back, although a
// row of its own table had the same before.
func TestRollback_ofAStructOfAnotherTable(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&cargo{}, &crate{}})
	stand.MustDo(t, db.Exec("CREATE TABLE cargos_west (LIKE cargos INCLUDING ALL)"))
	east, west := cargo{ID: 1}, cargo{ID: 1}
	stand.MustDo(t, db.Create(&east))
	stand.MustDo(t, db.Table("cargos_west").Create(&west))
	at := east
	_ = db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Table("cargos_west").Model(&west).Update("weight", 9))
		_ = tx.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Exec("UPDATE cargos SET version = version + 1"))
			stand.MustDo(t, tx.First(&at, east.ID))
			west = at
			return errUndo
		})
		return nil
	})
	stand.MustDo(t, db.Model(&east).Update("weight", 55)) // the rival
	if err := db.Save(&west).Error; err == nil {
		t.Errorf("overwritten: %+v", west)
	}
}
