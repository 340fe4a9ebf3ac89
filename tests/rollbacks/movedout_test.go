package rollbacks_test

import (
	"context"
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// The model is embedded in a form that is read behind a write, and the program takes it out.
func TestRollback_ofAModelThatWasMovedOutOfAForm(t *testing.T) {
	t.Parallel()
	type form struct {
		stand.Account `gorm:"embedded"`

		Extra int
	}
	for how, read := range map[string]func(tx *gorm.DB, forms *[]form) error{
		"Find": func(tx *gorm.DB, forms *[]form) error {
			return tx.Model(&stand.Account{}).Select("*, 1 AS extra").Order("id").Find(forms).Error
		},
		"Scan": func(tx *gorm.DB, forms *[]form) error {
			return tx.Raw("SELECT *, 1 AS extra FROM accounts ORDER BY id").Scan(forms).Error
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			db := accountsOf(t)
			var list []stand.Account
			err := db.Transaction(func(tx *gorm.DB) error {
				var forms []form
				stand.MustDo(t, tx.Order("id").Find(&list))
				stand.MustDo(t, tx.Model(&stand.Account{}).Where("id <= 2").Update("balance", 20))
				stand.Must(t, read(tx, &forms))
				list[0] = forms[0].Account
				return errUndo
			})
			if !errors.Is(err, errUndo) {
				t.Fatal(err)
			}
			cannotSave(t, db, &list[0])
		})
	}
}

// Find reads the first rows into the array that a list has, and the others into a larger one.
func TestRollback_ofAListThatHasOutgrownItsArray(t *testing.T) {
	t.Parallel()
	for when, write := range map[string]func(tx *gorm.DB) *gorm.DB{
		"read behind a write": func(tx *gorm.DB) *gorm.DB { return tx.Model(&stand.Account{}).Where("id = 1").Update("balance", 20) },
		"read before":         nil,
	} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			db := accountsOf(t)
			list := make([]stand.Account, 0, 3)
			stand.MustDo(t, db.Order("id").Find(&list))
			first := &list[0]
			stand.MustDo(t, db.Create(&stand.Account{ID: 4}))
			err := db.Transaction(func(tx *gorm.DB) error {
				if write != nil {
					stand.MustDo(t, write(tx))
				}
				stand.MustDo(t, tx.Order("id").Find(&list))
				if write == nil {
					stand.MustDo(t, tx.Model(&list[0]).Update("balance", 20))
					*first = list[0]
				}
				return errUndo
			})
			if !errors.Is(err, errUndo) {
				t.Fatal(err)
			}
			cannotSave(t, db, first)
		})
	}
}

// The ctx has ended, and the program has sorted what the transaction wrote. It notes what has failed before the transaction returns.
func TestCtxEndsATransaction_whoseStructsWereMoved(t *testing.T) {
	t.Parallel()
	db := accountsOf(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var list []stand.Account
	err := db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Order("id").Find(&list))
		stand.MustDo(t, tx.Model(&list[0]).Update("balance", 20))
		list[0], list[2] = list[2], list[0]
		cancel()
		cannotSave(t, db, &list[2])
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	stand.MustDo(t, db.Save(&list[1]))
}

// A stale struct was written with IgnoreVersion, and has the version of a fresh one by that. The two are swapped.
func TestRollback_ofAStaleStructThatWasSwappedWithAFreshOne(t *testing.T) {
	t.Parallel()
	db := accountsOf(t)
	var stale, fresh stand.Account
	stand.MustDo(t, db.First(&stale, 1))
	stand.MustDo(t, db.Exec("UPDATE accounts SET note = 'theirs', version = version + 1 WHERE id = 1"))
	err := db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.First(&fresh, 1))
		err := tx.Transaction(func(tx *gorm.DB) error {
			stand.MustDo(t, tx.Model(&stale).Clauses(gormlock.IgnoreVersion()).Update("balance", 50))
			stale, fresh = fresh, stale
			return errUndo
		})
		if !errors.Is(err, errUndo) {
			t.Error(err)
		}
		return nil
	})
	stand.Must(t, err)
	if err := db.Save(&fresh).Error; err == nil {
		t.Errorf("overwritten by %+v", fresh)
	}
	stand.Equal(t, "note", stand.Row[stand.Account](t, db, 1).Note, "theirs")
}

// One type has two tables. What was written in one of them is swapped with a struct of the other, which was written too.
func TestRollback_ofStructsOfTwoTablesThatWereSwapped(t *testing.T) {
	t.Parallel()
	for first, takenBack := range map[string]bool{"written": false, "written and taken back": true} {
		t.Run(first, func(t *testing.T) {
			t.Parallel()
			db := accountsOf(t)
			stand.MustDo(t, db.Exec("CREATE TABLE old_accounts (LIKE accounts INCLUDING ALL)"))
			stand.MustDo(t, db.Table("old_accounts").Create(&stand.Account{ID: 3, Balance: 11}))
			var mine, old stand.Account
			stand.MustDo(t, db.First(&mine, 3))
			stand.MustDo(t, db.Table("old_accounts").First(&old, 3))
			err := db.Transaction(func(tx *gorm.DB) error {
				_ = tx.Transaction(func(tx *gorm.DB) error {
					stand.MustDo(t, tx.Model(&mine).Update("balance", 40))
					if takenBack {
						return errUndo
					}
					return nil
				})
				_ = tx.Transaction(func(tx *gorm.DB) error {
					stand.MustDo(t, tx.Table("old_accounts").Save(&old))
					mine, old = old, mine
					return errUndo
				})
				return nil
			})
			stand.Must(t, err)
			stand.MustDo(t, db.Exec("UPDATE old_accounts SET balance = 50, version = version + 1 WHERE id = 3"))
			mine.Balance = 3
			if err := db.Table("old_accounts").Save(&mine).Error; err == nil {
				t.Errorf("overwritten by version %d", mine.Version)
			}
		})
	}
}

// What was read behind a write is moved, and the transaction writes it there by what changes nothing.
func TestRollback_ofAReadThatWasMovedAndInserted(t *testing.T) {
	t.Parallel()
	db := accountsOf(t)
	var list []stand.Account
	err := db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Order("id").Find(&list))
		stand.MustDo(t, tx.Model(&stand.Account{}).Where("id = 1").Update("balance", 20))
		read := stand.Account{ID: 1}
		stand.MustDo(t, tx.First(&read))
		list[2] = read
		stand.MustDo(t, tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&list[2]))
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
	cannotSave(t, db, &list[2])
}
