package rollbacks_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// accountsOf makes three accounts.
func accountsOf(t *testing.T) *gorm.DB {
	t.Helper()
	db := stand.Versioned(t, []any{&stand.Account{}})
	for id := range int64(3) {
		stand.MustDo(t, db.Create(&stand.Account{ID: id + 1, Balance: 10}))
	}
	return db
}

// cannotSave writes the row of a struct as a rival does, and saves the struct.
func cannotSave(t *testing.T, db *gorm.DB, at *stand.Account) {
	t.Helper()
	stand.MustDo(t, db.Exec("UPDATE accounts SET balance = 50, version = version + 1 WHERE id = ?", at.ID))
	held := *at
	at.Balance = 3
	if err := db.Save(at).Error; err == nil {
		t.Errorf("overwritten: %+v", held)
	}
	stand.Equal(t, "balance", stand.Row[stand.Account](t, db, at.ID).Balance, 50)
}

// What was read behind a write is moved to where the transaction had another struct, or another version of it. The rollback finds it there.
func TestRollback_ofAReadThatWasMoved(t *testing.T) {
	t.Parallel()
	for place, meet := range map[string]func(tx *gorm.DB, list []stand.Account) error{
		"read": func(tx *gorm.DB, list []stand.Account) error {
			for i := range list {
				if err := tx.First(&list[i]).Error; err != nil {
					return err
				}
			}
			return nil
		},
		"locked":   func(tx *gorm.DB, list []stand.Account) error { return gormlock.LockRows(tx, &list) },
		"verified": func(tx *gorm.DB, list []stand.Account) error { return gormlock.VerifyVersion(tx, &list[0]) },
		"tried": func(tx *gorm.DB, list []stand.Account) error {
			return tx.Model(&list).Where("balance = 77").Update("balance", 1).Error
		},
		"written": func(tx *gorm.DB, list []stand.Account) error { return tx.Save(&list).Error },
	} {
		for move, does := range map[string]func(list []stand.Account, read *stand.Account) *stand.Account{
			"swapped": func(list []stand.Account, read *stand.Account) *stand.Account {
				list[0], *read = *read, list[0]
				return &list[0]
			},
			"copied": func(list []stand.Account, read *stand.Account) *stand.Account { list[0] = *read; return &list[0] },
			"copied to its own": func(list []stand.Account, read *stand.Account) *stand.Account {
				at := &list[slices.IndexFunc(list, func(a stand.Account) bool { return a.ID == read.ID })]
				*at = *read
				return at
			},
		} {
			t.Run(place+", "+move, func(t *testing.T) {
				t.Parallel()
				db := accountsOf(t)
				var list []stand.Account
				stand.MustDo(t, db.Order("id").Find(&list))
				var at *stand.Account
				err := db.Transaction(func(tx *gorm.DB) error {
					_ = meet(tx, list)
					stand.MustDo(t, tx.Model(&stand.Account{}).Where("id <= 2").Update("balance", 20))
					read := stand.Account{ID: 2}
					if place == "verified" && move == "copied to its own" {
						read.ID = 1
					}
					stand.MustDo(t, tx.First(&read))
					at = does(list, &read)
					return errUndo
				})
				if !errors.Is(err, errUndo) {
					t.Fatal(err)
				}
				cannotSave(t, db, at)
			})
		}
	}
}

// An element of a list is read again behind a write, and the list is sorted or shortened. That element is lost, and no other.
func TestRollback_ofOneThatWasReadAgainInAList(t *testing.T) {
	t.Parallel()
	for move, does := range map[string]func(list []stand.Account) []stand.Account{
		"reversed": func(list []stand.Account) []stand.Account { slices.Reverse(list); return list },
		"deleted":  func(list []stand.Account) []stand.Account { return slices.Delete(list, 0, 1) },
		"swapped":  func(list []stand.Account) []stand.Account { list[0], list[2] = list[2], list[0]; return list },
	} {
		t.Run(move, func(t *testing.T) {
			t.Parallel()
			db := accountsOf(t)
			var list []stand.Account
			err := db.Transaction(func(tx *gorm.DB) error {
				stand.MustDo(t, tx.Order("id").Find(&list))
				stand.MustDo(t, tx.Model(&stand.Account{}).Where("balance < 100").Update("balance", 20))
				stand.MustDo(t, tx.First(&list[2], 3))
				list = does(list)
				return errUndo
			})
			if !errors.Is(err, errUndo) {
				t.Fatal(err)
			}
			for i := range list {
				if list[i].ID == 3 {
					cannotSave(t, db, &list[i])
				} else {
					stand.MustDo(t, db.Save(&list[i]))
				}
			}
		})
	}
}

// A struct that nobody touched is moved to where another one was read behind a write. It can be saved.
func TestRollback_sparesWhatWasMovedToWhereOthersWereRead(t *testing.T) {
	t.Parallel()
	db := accountsOf(t)
	var list []stand.Account
	stand.MustDo(t, db.Order("id").Find(&list))
	err := db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Save(&list[1]))
		stand.Must(t, gormlock.LockRow(tx, &list[2]))
		list[0], list[2] = list[2], list[0]
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
	stand.MustDo(t, db.Save(&list[2]))
}

// A row is read behind a write, however that was made, and another struct has its version when the transaction writes it or tries to. It may be a
// copy of what was read, so it is lost, unless a struct had the version before that write.
func TestRollback_ofAStructThatMayBeACopyOfWhatWasRead(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(tx *gorm.DB, own *stand.Account) error{
		"written": func(tx *gorm.DB, own *stand.Account) error { return tx.Save(own).Error },
		"tried": func(tx *gorm.DB, own *stand.Account) error {
			return tx.Model(own).Where("balance = 77").Update("balance", 1).Error
		},
	} {
		for wrote, bulk := range map[string]func(tx *gorm.DB) error{
			"Model": func(tx *gorm.DB) error {
				return tx.Model(&stand.Account{}).Where("id <= 2").Update("balance", 20).Error
			},
			"Table": func(tx *gorm.DB) error {
				return tx.Table("accounts").Where("id <= 2").Updates(map[string]any{"version": 2}).Error
			},
			"Exec": func(tx *gorm.DB) error {
				return tx.Exec("UPDATE accounts SET version = version + 1 WHERE id <= 2").Error
			},
			"gorm.G": func(tx *gorm.DB) error {
				_, err := gorm.G[stand.Account](tx).Where("id <= 2").Update(context.Background(), "balance", 20)
				return err
			},
			"Raw": func(tx *gorm.DB) error {
				var versions []int64
				return tx.Raw("UPDATE accounts SET version = version + 1 WHERE id <= 2 RETURNING version").Scan(&versions).Error
			},
			"IgnoreVersion": func(tx *gorm.DB) error {
				return tx.Model(&stand.Account{ID: 2}).Clauses(gormlock.IgnoreVersion()).Update("balance", 20).Error
			},
			"again, behind one taken back": func(tx *gorm.DB) error {
				write := func(tx *gorm.DB) *gorm.DB { return tx.Model(&stand.Account{}).Where("id <= 2").Update("balance", 20) }
				_ = tx.Transaction(func(tx *gorm.DB) error {
					var read stand.Account
					return errors.Join(errUndo, write(tx).Error, tx.First(&read, 2).Error, tx.Save(&read).Error)
				})
				return write(tx).Error
			},
		} {
			for met, lost := range map[string]bool{"": true, ", met before": false} {
				t.Run(name+" behind "+wrote+met, func(t *testing.T) {
					t.Parallel()
					db := accountsOf(t)
					var read, own stand.Account
					stand.MustDo(t, db.First(&own, 2))
					err := db.Transaction(func(tx *gorm.DB) error {
						if met != "" {
							stand.Must(t, gormlock.VerifyVersion(tx, &own))
						}
						stand.Must(t, bulk(tx))
						stand.MustDo(t, tx.First(&read, 2))
						if met == "" {
							own = read
						}
						_ = write(tx, &own)
						return errUndo
					})
					if !errors.Is(err, errUndo) {
						t.Fatal(err)
					}
					if lost {
						cannotSave(t, db, &own)
					} else {
						stand.MustDo(t, db.Save(&own))
					}
				})
			}
		}
	}
}

// pairOf reads the accounts 1 and 2 before its transaction writes.
var pairOf = map[string]func(tx *gorm.DB) (a, b *stand.Account, err error){
	"an array": func(tx *gorm.DB) (a, b *stand.Account, err error) {
		var all [2]stand.Account
		err = tx.Order("id").Limit(2).Find(&all).Error
		return &all[0], &all[1], err
	},
	"pointers that are filtered": func(tx *gorm.DB) (a, b *stand.Account, err error) {
		var all []*stand.Account
		err = tx.Order("id").Find(&all).Error
		a, b = all[0], all[1]
		_ = slices.DeleteFunc(all, func(one *stand.Account) bool { return one.ID != 3 })
		return a, b, err
	},
	"Scan": func(tx *gorm.DB) (a, b *stand.Account, err error) {
		var all []stand.Account
		err = tx.Model(&stand.Account{}).Order("id").Scan(&all).Error
		return &all[0], &all[1], err
	},
	"Scan of raw SQL": func(tx *gorm.DB) (a, b *stand.Account, err error) {
		var all []stand.Account
		err = tx.Raw("SELECT * FROM accounts ORDER BY id").Scan(&all).Error
		return &all[0], &all[1], err
	},
	"Scan of one each": func(tx *gorm.DB) (a, b *stand.Account, err error) {
		a, b = &stand.Account{}, &stand.Account{}
		return a, b, errors.Join(tx.Raw("SELECT * FROM accounts WHERE id = 1").Scan(a).Error, tx.Table("accounts").Where("id = 2").Scan(b).Error)
	},
	"gorm.G": func(tx *gorm.DB) (a, b *stand.Account, err error) {
		var all []stand.Account
		err = gorm.G[stand.Account](tx).Order("id").Scan(context.Background(), &all)
		return &all[0], &all[1], err
	},
	"another model's query": func(tx *gorm.DB) (a, b *stand.Account, err error) {
		var all []stand.Account
		err = tx.Model(&stand.PlainAccount{}).Table("accounts").Order("id").Find(&all).Error
		return &all[0], &all[1], err
	},
	"forms": func(tx *gorm.DB) (a, b *stand.Account, err error) {
		var all []struct {
			Account stand.Account `gorm:"embedded"`
			Extra   int
		}
		err = tx.Model(&stand.Account{}).Select("*, 1 AS extra").Order("id").Find(&all).Error
		return &all[0].Account, &all[1].Account, err
	},
}

// A struct that was written is moved to where the transaction has read another one, however that was.
func TestRollback_ofAMovedStructWhereverOthersWereRead(t *testing.T) {
	t.Parallel()
	for name, read := range pairOf {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := accountsOf(t)
			var a *stand.Account
			err := db.Transaction(func(tx *gorm.DB) error {
				var b *stand.Account
				var err error
				if a, b, err = read(tx); err != nil {
					return err
				}
				stand.MustDo(t, tx.Model(b).Update("balance", 20))
				*a, *b = *b, *a
				return errUndo
			})
			if !errors.Is(err, errUndo) {
				t.Fatal(err)
			}
			cannotSave(t, db, a)
		})
	}
}

// placedOwner has a child by value.
type placedOwner struct {
	ID      int64
	Child   placedChild `gorm:"foreignKey:OwnerID"`
	Version int64       `gorm:"not null;default:1" gormlock:"version"`
}

type placedChild struct {
	ID, OwnerID int64
	Name        string
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}

// Children that are joined or preloaded are in their owners, which are sorted.
func TestRollback_ofAChildWhoseOwnerWasMoved(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]func(tx *gorm.DB) *gorm.DB{
		"joined":    func(tx *gorm.DB) *gorm.DB { return tx.Joins("Child") },
		"preloaded": func(tx *gorm.DB) *gorm.DB { return tx.Preload("Child") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&placedOwner{}, &placedChild{}})
			stand.MustDo(t, db.Create(&[]placedOwner{{ID: 1, Child: placedChild{ID: 1}}, {ID: 2, Child: placedChild{ID: 2}}}))
			var all []placedOwner
			err := db.Transaction(func(tx *gorm.DB) error {
				stand.MustDo(t, with(tx).Order("placed_owners.id").Find(&all))
				stand.MustDo(t, tx.Model(&all[0].Child).Update("name", "undone"))
				slices.Reverse(all)
				return errUndo
			})
			if !errors.Is(err, errUndo) {
				t.Fatal(err)
			}
			stand.MustDo(t, db.Exec("UPDATE placed_children SET name = 'rival', version = version + 1"))
			if err := db.Save(&all[1].Child).Error; err == nil {
				t.Errorf("overwritten: %+v", all[1].Child)
			}
		})
	}
}

// One type has two tables. A struct of the one that was written is moved to where the transaction has read or tried one of the other.
func TestRollback_ofAStructThatWasMovedToAnotherTablesPlace(t *testing.T) {
	t.Parallel()
	for name, meet := range map[string]func(tx *gorm.DB, old *stand.Account) error{
		"read": func(tx *gorm.DB, old *stand.Account) error { return tx.Table("old_accounts").First(old).Error },
		"tried": func(tx *gorm.DB, old *stand.Account) error {
			_ = tx.Table("old_accounts").Model(old).Where("balance = 77").Update("balance", 1)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := accountsOf(t)
			stand.MustDo(t, db.Exec("CREATE TABLE old_accounts (LIKE accounts INCLUDING ALL)"))
			stand.MustDo(t, db.Table("old_accounts").Create(&stand.Account{ID: 2, Balance: 11}))
			var mine, old stand.Account
			stand.MustDo(t, db.First(&mine, 1))
			stand.MustDo(t, db.Table("old_accounts").First(&old, 2))
			err := db.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, meet(tx, &old))
				stand.MustDo(t, tx.Model(&mine).Update("balance", 20))
				old, mine = mine, old
				return errUndo
			})
			if !errors.Is(err, errUndo) {
				t.Fatal(err)
			}
			cannotSave(t, db, &old)
		})
	}
}
