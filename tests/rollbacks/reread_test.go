package rollbacks_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A struct that was read behind the transaction's own write has what that wrote. The program may move it, and may have assigned to the struct that
// was written.
func TestRollback_ofWhatWasReadAgainAndMoved(t *testing.T) {
	t.Parallel()
	find := func(tx *gorm.DB, list *[]stand.Account) error { return tx.Order("id").Find(list).Error }
	reads := map[string]func(tx *gorm.DB, list *[]stand.Account) error{
		"Find":       find,
		"Find twice": func(tx *gorm.DB, list *[]stand.Account) error { return errors.Join(find(tx, list), find(tx, list)) },
		"batches": func(tx *gorm.DB, list *[]stand.Account) error {
			return tx.FindInBatches(list, 4, func(*gorm.DB, int) error { return nil }).Error
		},
		"one by one": func(tx *gorm.DB, list *[]stand.Account) error {
			*list = make([]stand.Account, 3)
			for i := range *list {
				stand.Must(t, tx.Offset(i).Order("id").First(&(*list)[i]).Error)
			}
			return nil
		},
	}
	for name, read := range maps.Clone(reads) {
		reads[name+", in a part that is rolled back"] = func(tx *gorm.DB, list *[]stand.Account) error {
			part := errors.New("part")
			if err := tx.Transaction(func(tx *gorm.DB) error { return errors.Join(read(tx, list), part) }); err.Error() != part.Error() {
				return err
			}
			return nil
		}
	}
	moves := map[string]func(list []stand.Account){
		"swapped":  func(list []stand.Account) { list[0], list[1] = list[1], list[0] },
		"reversed": slices.Reverse[[]stand.Account],
		"copied":   func(list []stand.Account) { list[2] = list[0] },
		"in place": func([]stand.Account) {},
	}
	ends := map[string]func(db *gorm.DB, body func(tx *gorm.DB) error) error{
		"rolled back": func(db *gorm.DB, body func(tx *gorm.DB) error) error { return db.Transaction(body) },
		"rolled back in another": func(db *gorm.DB, body func(tx *gorm.DB) error) error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Transaction(body) })
		},
		"rolled back inside": func(db *gorm.DB, body func(tx *gorm.DB) error) (err error) {
			stand.Must(t, db.Transaction(func(tx *gorm.DB) error { err = tx.Transaction(body); return nil }))
			return err
		},
	}
	back := errors.New("back")
	db := stand.Versioned(t, []any{&stand.Account{}})
	for readName, read := range reads {
		for moveName, move := range moves {
			for endName, end := range ends {
				stand.MustDo(t, db.Exec("DELETE FROM accounts"))
				x := stand.Made(t, db, stand.Account{Balance: 1})
				stand.Made(t, db, stand.Account{Balance: 1})
				stand.Made(t, db, stand.Account{Balance: 1})
				var list, own []stand.Account
				stand.Must(t, db.Order("id DESC").Find(&own).Error)
				if err := end(db, func(tx *gorm.DB) error {
					x.Balance = 418
					stand.Must(t, tx.Save(&x).Error)
					stand.Must(t, read(tx, &list))
					own[1].Balance = 419
					stand.Must(t, tx.Save(&own[1]).Error)
					stand.Must(t, read(tx, &own))
					move(list)
					move(own)
					return back
				}); !errors.Is(err, back) {
					t.Fatal(err)
				}
				list = append(list, own...)
				for i := range list {
					row := stand.Row[stand.Account](t, db, list[i].ID)
					if held := list[i]; held.Version == row.Version && held.Balance != row.Balance {
						t.Errorf("%s, %s, %s: element %d is %+v, and its row %+v", readName, moveName, endName, i, held, row)
					}
					list[i].Note = "edited"
					if err := db.Save(&list[i]).Error; list[i].ID <= x.ID+1 && !errors.Is(err, gormlock.ErrVersionMissing) {
						t.Errorf("%s, %s, %s: the next Save: %v", readName, moveName, endName, err)
					}
				}
				if err := db.Model(&x).Update("note", "again").Error; err != nil {
					t.Errorf("%s, %s, %s: the struct that was written: %v", readName, moveName, endName, err)
				}
			}
		}
	}
}

// A struct that the transaction wrote gets its old version back, also if another struct of its row was read behind that write and then written like it.
func TestRollback_besideWhatWasReadAgain(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	x := stand.Made(t, db, stand.Account{Balance: 1})
	was, back := x, errors.New("back")
	if err := db.Transaction(func(tx *gorm.DB) error {
		stand.Must(t, tx.Model(&x).Update("balance", 2).Error)
		read := stand.Row[stand.Account](t, tx, x.ID)
		for _, one := range []*stand.Account{&x, &read} {
			stand.Must(t, tx.Model(one).Update("note", "the same").Error)
		}
		return back
	}); !errors.Is(err, back) {
		t.Fatal(err)
	}
	if x != was {
		t.Errorf("it is %+v, and was %+v", x, was)
	}
	stand.Must(t, db.Model(&x).Update("balance", 3).Error)
}
