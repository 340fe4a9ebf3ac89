package rollbacks_test

import (
	"errors"
	"slices"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// errHook is the error of a hook.
var errHook = errors.New("hook")

// tried is a row whose hook can refuse a write.
type tried struct {
	ID      int64
	Balance int64 `gorm:"check:balance >= 0"`
	Note    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func (tried) TableName() string { return "tried" }

func (t *tried) BeforeUpdate(*gorm.DB) error {
	if t.Note == "refused" {
		return errHook
	}
	return nil
}

func (t *tried) AfterUpdate(*gorm.DB) error {
	if t.Note == "refused later" {
		return errHook
	}
	return nil
}

// tries are writes of a struct that write nothing.
var tries = map[string]func(tx *gorm.DB, t *tried) error{
	"a check":           func(tx *gorm.DB, t *tried) error { return tx.Model(t).Update("balance", -1).Error },
	"a check, Save":     func(tx *gorm.DB, t *tried) error { t.Balance = -1; return tx.Save(t).Error },
	"a check, pointers": func(tx *gorm.DB, t *tried) error { t.Balance = -1; return tx.Save([]*tried{t}).Error },
	"a check, upsert": func(tx *gorm.DB, t *tried) error {
		t.Balance = -1
		return tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(t).Error
	},
	"a check, SaveMerged": func(tx *gorm.DB, t *tried) error {
		base := *t
		t.Balance = -1
		return gormlock.SaveMerged(tx, t, &base)
	},
	"a conflict, SaveMerged": func(tx *gorm.DB, t *tried) error {
		base := *t
		t.Balance = 1
		return errors.Join(tx.Exec("UPDATE tried SET balance = 2, version = 9").Error, gormlock.SaveMerged(tx, t, &base))
	},
	"no lock, SaveMerged": func(tx *gorm.DB, t *tried) error {
		base := *t
		t.Balance = 1
		return gormlock.SaveMerged(tx.Where("1 / (id - id) = 1"), t, &base)
	},
	"LockRow": func(tx *gorm.DB, t *tried) error { return gormlock.LockRow(tx.Where("1 / (id - id) = 1"), t) },
	"LockRows": func(tx *gorm.DB, t *tried) error {
		return gormlock.LockRows(tx.Where("1 / (id - id) = 1"), &[]*tried{t})
	},
	"a stale version, VerifyVersion": func(tx *gorm.DB, t *tried) error {
		return errors.Join(tx.Exec("UPDATE tried SET version = 9").Error, gormlock.VerifyVersion(tx, t))
	},
	"VerifyVersion":  func(tx *gorm.DB, t *tried) error { return gormlock.VerifyVersion(tx.Where("1 / (id - id) = 1"), t) },
	"a duplicate":    func(tx *gorm.DB, t *tried) error { return tx.Create(t).Error },
	"no such column": func(tx *gorm.DB, t *tried) error { return tx.Model(t).Update("nosuch", 1).Error },
	"no such table":  func(tx *gorm.DB, t *tried) error { return tx.Table("nosuch").Model(t).Update("balance", 1).Error },
	"an alias":       func(tx *gorm.DB, t *tried) error { return tx.Table("tried AS t").Model(t).Update("balance", -1).Error },
	"a deletion":     func(tx *gorm.DB, t *tried) error { return tx.Where("1 / (id - id) = 1").Delete(t).Error },
	"a stale version": func(tx *gorm.DB, t *tried) error {
		return errors.Join(tx.Exec("UPDATE tried SET version = 9").Error, tx.Save(t).Error)
	},
	"a stale touch": func(tx *gorm.DB, t *tried) error {
		return errors.Join(tx.Exec("UPDATE tried SET version = 9").Error, gormlock.Touch(tx, t))
	},
	"an error before": func(tx *gorm.DB, t *tried) error {
		tx = tx.Where("true")
		_ = tx.AddError(errUndo)
		return tx.Model(t).Update("balance", 1).Error
	},
	"an error before, Save": func(tx *gorm.DB, t *tried) error {
		tx = tx.Where("true")
		_ = tx.AddError(errUndo)
		return tx.Save(t).Error
	},
	"an error before, Delete": func(tx *gorm.DB, t *tried) error {
		tx = tx.Where("true")
		_ = tx.AddError(errUndo)
		return tx.Delete(t).Error
	},
	"a hook":       func(tx *gorm.DB, t *tried) error { t.Note = "refused"; return tx.Save(t).Error },
	"a hook after": func(tx *gorm.DB, t *tried) error { t.Note = "refused later"; return tx.Save(t).Error },
	"a savepoint": func(tx *gorm.DB, t *tried) error {
		return tx.Transaction(func(tx *gorm.DB) error { return tx.Model(t).Update("balance", -1).Error })
	},
	"a savepoint, and on": func(tx *gorm.DB, t *tried) error {
		if tx.Transaction(func(tx *gorm.DB) error { return tx.Model(t).Update("balance", -1).Error }) == nil {
			return nil
		}
		return errUndo
	},
	"no row": func(tx *gorm.DB, t *tried) error {
		return errors.Join(errUndo, tx.Model(t).Where("balance = 99").Update("balance", 1).Error)
	},
	"no row, any version": func(tx *gorm.DB, t *tried) error {
		return errors.Join(errUndo, tx.Clauses(gormlock.IgnoreVersion()).Model(t).Where("balance = 99").Update("balance", 1).Error)
	},
	"nothing to insert": func(tx *gorm.DB, t *tried) error {
		return errors.Join(errUndo, tx.Clauses(clause.OnConflict{DoNothing: true}).Create(t).Error)
	},
}

// A struct is moved within its list, and a write of it fails, or finds no row. The rollback reaches it where it is.
func TestRollback_ofAMovedStructWhoseNextWriteFails(t *testing.T) {
	t.Parallel()
	for plugin, options := range map[string][]gormlock.Option{"": nil, ", plain": {gormlock.PlainTransactions()}} {
		for move, does := range map[string]func([]tried) int{
			"":           func([]tried) int { return 2 },
			", reversed": func(list []tried) int { slices.Reverse(list); return 0 },
			", copied":   func(list []tried) int { list[0] = list[2]; return 0 },
		} {
			for name, try := range tries {
				t.Run(name+move+plugin, func(t *testing.T) {
					t.Parallel()
					p := gormlock.New(options...)
					t.Cleanup(func() { _ = p.Close() })
					db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(p))
					stand.Must(t, db.AutoMigrate(&tried{}))
					stand.MustDo(t, db.Create(&[]tried{{ID: 1}, {ID: 2}, {ID: 3}}))
					var list []tried
					stand.MustDo(t, db.Order("id").Find(&list))
					var at *tried
					err := gormlock.Transaction(db, func(tx *gorm.DB) error {
						stand.MustDo(t, tx.Model(&list[2]).Update("note", "moved"))
						at = &list[does(list)]
						return try(tx, at)
					})
					if err == nil {
						t.Fatal("it was committed")
					}
					stand.MustDo(t, db.Exec("UPDATE tried SET balance = 50, version = version + 1"))
					at.Balance, at.Note = 3, ""
					if err := db.Save(at).Error; err == nil {
						t.Errorf("overwritten: %+v", *at)
					}
					stand.Equal(t, "balance", stand.Row[tried](t, db, 3).Balance, 50)
				})
			}
		}
	}
}
