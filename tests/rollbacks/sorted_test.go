package rollbacks_test

import (
	"errors"
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A transaction reads a list, and saves one element of it. Where the others were may be that one after the list was sorted or shortened.
func TestRollback_ofOneInAListThatWasRead(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(tx *gorm.DB, list *[]stand.Account) error{
		"Find": func(tx *gorm.DB, list *[]stand.Account) error { return tx.Order("id").Find(list).Error },
		"Raw": func(tx *gorm.DB, list *[]stand.Account) error {
			return tx.Raw("SELECT * FROM accounts ORDER BY id").Find(list).Error
		},
		"LockRows": func(tx *gorm.DB, list *[]stand.Account) error {
			*list = []stand.Account{{ID: 1}, {ID: 2}, {ID: 3}}
			return gormlock.LockRows(tx, list)
		},
		"a view": func(tx *gorm.DB, list *[]stand.Account) error {
			return tx.Table("accounts_seen").Order("id").Find(list).Error
		},
		"a row lock": func(tx *gorm.DB, list *[]stand.Account) error {
			return tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Order("id").Find(list).Error
		},
	} {
		for move, does := range map[string]func(list []stand.Account) []stand.Account{
			"reversed": func(list []stand.Account) []stand.Account { slices.Reverse(list); return list },
			"deleted":  func(list []stand.Account) []stand.Account { return slices.Delete(list, 0, 1) },
			"shifted":  func(list []stand.Account) []stand.Account { copy(list, list[1:]); return list[:2] },
			"swapped":  func(list []stand.Account) []stand.Account { list[0], list[1] = list[1], list[0]; return list },
		} {
			t.Run(name+", "+move, func(t *testing.T) {
				db := stand.Versioned(t, []any{&stand.Account{}})
				for id := range int64(3) {
					stand.MustDo(t, db.Create(&stand.Account{ID: id + 1, Balance: 10}))
				}
				stand.MustDo(t, db.Exec("CREATE OR REPLACE VIEW accounts_seen AS SELECT * FROM accounts"))
				var list []stand.Account
				err := db.Transaction(func(tx *gorm.DB) error {
					stand.Must(t, read(tx, &list))
					list[1].Balance = 90
					stand.MustDo(t, tx.Save(&list[1]))
					list = does(list)
					return errUndo
				})
				if !errors.Is(err, errUndo) {
					t.Fatal(err)
				}
				stand.MustDo(t, db.Exec("UPDATE accounts SET balance = 50, version = version + 1 WHERE id = 2"))
				for i := range list {
					list[i].Note = "again"
					if err := db.Save(&list[i]).Error; (err == nil) != (list[i].ID != 2) {
						t.Errorf("%+v: %v", list[i], err)
					}
				}
				stand.Equal(t, "balance", stand.Row[stand.Account](t, db, 2).Balance, 50)
			})
		}
	}
}
