package rollbacks_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// Two structs of one row may hold the same version for different states of it, if one of them is written with IgnoreVersion. A
// rollback to a savepoint takes back what was done to that one, and leaves the other, however it got there.
func TestTransaction_rollbackLeavesTheOtherStruct(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.Must(t, db.AutoMigrate(&stand.Account{}))
	errBack := errors.New("back")
	nested := func(tx *gorm.DB, do func(tx *gorm.DB)) {
		_ = tx.Transaction(func(tx *gorm.DB) error {
			do(tx)
			return errBack
		})
	}
	ways := map[string]func(t *testing.T, tx *gorm.DB, other *stand.Account){
		"saved": func(t *testing.T, tx *gorm.DB, other *stand.Account) {
			other.Balance = 6
			stand.Must(t, tx.Save(other).Error)
		},
		"saved and edited": func(t *testing.T, tx *gorm.DB, other *stand.Account) {
			other.Balance = 6
			stand.Must(t, tx.Save(other).Error)
			other.Note = "mine"
		},
		"updated": func(t *testing.T, tx *gorm.DB, other *stand.Account) {
			stand.Must(t, tx.Model(other).Update("balance", 7).Error)
		},
		"touched": func(t *testing.T, tx *gorm.DB, other *stand.Account) {
			stand.Must(t, gormlock.Touch(tx, other))
		},
		"read": func(t *testing.T, tx *gorm.DB, other *stand.Account) {
			stand.Must(t, tx.Model(&stand.Account{}).Where("id = ?", other.ID).Update("balance", 6).Error)
			stand.Must(t, tx.First(other).Error)
		},
		"read, saved and taken back": func(t *testing.T, tx *gorm.DB, other *stand.Account) {
			stand.Must(t, tx.Model(&stand.Account{}).Where("id = ?", other.ID).Update("balance", 6).Error)
			stand.Must(t, tx.First(other).Error)
			nested(tx, func(tx *gorm.DB) {
				stand.Must(t, tx.Model(other).Update("balance", 7).Error)
			})
		},
	}
	for name, way := range ways {
		for _, write := range []string{"Update", "Save", "Updates", "Update of a note"} {
			t.Run(name+"/"+write, func(t *testing.T) {
				t.Parallel()
				first := &stand.Account{Balance: 5}
				stand.Must(t, db.Create(first).Error)
				other := &stand.Account{ID: first.ID}
				stand.Must(t, db.First(other).Error)
				tx := db.Begin()
				defer tx.Rollback()
				way(t, tx, other)
				want, held := *other, *first
				nested(tx, func(tx *gorm.DB) {
					switch tx := tx.Clauses(gormlock.IgnoreVersion()); write {
					case "Update":
						stand.Must(t, tx.Model(first).Update("balance", 3).Error)
					case "Save":
						stand.Must(t, tx.Save(first).Error)
					case "Updates":
						stand.Must(t, tx.Model(first).Updates(stand.Account{Balance: 9, Note: "blind"}).Error)
					case "Update of a note":
						stand.Must(t, tx.Model(first).Update("note", "blind").Error)
					}
				})
				if *other != want || *first != held {
					t.Errorf("the other is %+v, want %+v; the first is %+v, want %+v", *other, want, *first, held)
				}
				stand.Must(t, tx.Model(other).Update("balance", 10).Error)
				stand.Must(t, tx.Commit().Error)
			})
		}
	}
}

// A struct that was written with IgnoreVersion and moved is still taken back where it is, also onto the place of another one of its row.
func TestTransaction_rollbackFindsWhatMoved(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.Must(t, db.AutoMigrate(&stand.Account{}))
	for _, move := range []string{"swapped", "copied", "shifted"} {
		t.Run(move, func(t *testing.T) {
			t.Parallel()
			list := make([]stand.Account, 2)
			list[0].Balance = 5
			stand.Must(t, db.Create(&list[0]).Error)
			list[1] = stand.Account{ID: list[0].ID}
			stand.Must(t, db.First(&list[1]).Error)
			tx := db.Begin()
			defer tx.Rollback()
			stand.Must(t, tx.Model(&list[1]).Update("balance", 6).Error)
			_ = tx.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, tx.Model(&list[0]).Clauses(gormlock.IgnoreVersion()).Updates(stand.Account{Balance: 9, Note: "blind"}).Error)
				switch move {
				case "swapped":
					list[0], list[1] = list[1], list[0]
				case "copied":
					list[1] = list[0]
				case "shifted":
					list[1], list[0] = list[0], stand.Account{}
				}
				return errors.New("back")
			})
			for i := range list {
				if list[i].Note == "blind" || list[i].Balance == 5 && list[i].Version == 2 {
					t.Errorf("element %d holds what was taken back: %+v", i, list[i])
				}
			}
		})
	}
}

// Also if the two hold the same in all columns.
func TestTransaction_rollbackLeavesTheOtherStructThatIsEqual(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.Must(t, db.AutoMigrate(&stand.Account{}))
	errBack := errors.New("back")
	first := &stand.Account{Balance: 5}
	stand.Must(t, db.Create(first).Error)
	other := &stand.Account{ID: first.ID}
	stand.Must(t, db.First(other).Error)
	other.Balance = 6
	stand.Must(t, db.Save(other).Error)
	want, held := *other, *first
	tx := db.Begin()
	defer tx.Rollback()
	for _, do := range []func(tx *gorm.DB) error{
		func(tx *gorm.DB) error { return tx.Model(other).Update("balance", 7).Error },
		func(tx *gorm.DB) error {
			return tx.Model(first).Clauses(gormlock.IgnoreVersion()).Update("balance", 6).Error
		},
	} {
		_ = tx.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, do(tx))
			return errBack
		})
	}
	if *other != want || *first != held {
		t.Errorf("the other is %+v, want %+v; the first is %+v, want %+v", *other, want, *first, held)
	}
}
