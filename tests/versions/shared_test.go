package versions_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// Stamp is embedded by its pointer: a copy of the struct around it shares it.
type Stamp struct {
	Note    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type copiedStamp struct {
	ID      int64
	Balance int64
	*Stamp
}

// A copy of a struct shares what is embedded by a pointer, the version too. A write or a read of one moves the version of no other:
// its next write would store its old columns.
func TestEmbeddedPointer_ofACopy(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(db *gorm.DB, a *copiedStamp) error{
		"Update": func(db *gorm.DB, a *copiedStamp) error { return db.Model(a).Update("balance", 2).Error },
		"Save":   func(db *gorm.DB, a *copiedStamp) error { a.Balance = 2; return db.Save(a).Error },
		"slice":  func(db *gorm.DB, a *copiedStamp) error { a.Balance = 2; return db.Save([]*copiedStamp{a}).Error },
		"upsert": func(db *gorm.DB, a *copiedStamp) error {
			a.Balance = 2
			return db.Clauses(stand.UpdateAll).Create(a).Error
		},
		"returning": func(db *gorm.DB, a *copiedStamp) error {
			return db.Model(a).Clauses(clause.Returning{}).Update("balance", gorm.Expr("balance + 1")).Error
		},
		"Touch": func(db *gorm.DB, a *copiedStamp) error {
			return db.Transaction(func(tx *gorm.DB) error { return gormlock.Touch(tx, a) })
		},
		"First": func(db *gorm.DB, a *copiedStamp) error { rivalOfStamps(db, a.ID); return db.First(a, a.ID).Error },
		"LockRow": func(db *gorm.DB, a *copiedStamp) error {
			rivalOfStamps(db, a.ID)
			return db.Transaction(func(tx *gorm.DB) error { return gormlock.LockRow(tx, a) })
		},
		"LockRows": func(db *gorm.DB, a *copiedStamp) error {
			rivalOfStamps(db, a.ID)
			all := []*copiedStamp{a}
			return db.Transaction(func(tx *gorm.DB) error { return gormlock.LockRows(tx, &all) })
		},
		"SaveMerged": func(db *gorm.DB, a *copiedStamp) error {
			rivalOfStamps(db, a.ID)
			base := *a
			base.Stamp = &Stamp{a.Note, a.Version}
			a.Note = "mine"
			return gormlock.SaveMerged(db, a, &base)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&copiedStamp{}})
			a := stand.Made(t, db, copiedStamp{Balance: 1, Stamp: &Stamp{}})
			older := a
			stand.Must(t, move(db, &a))
			stand.Equal(t, "the version", a.Version, stand.Row[copiedStamp](t, db, a.ID).Version)
			older.Balance = 9
			if err := db.Save(&older).Error; !errors.Is(err, gormlock.ErrStale) {
				t.Fatalf("%+v was saved over %+v: %v", older, a, err)
			}
			stand.MustDo(t, db.Model(&a).Update("balance", 3))
		})
	}
}

func rivalOfStamps(db *gorm.DB, id int64) {
	db.Exec("UPDATE copied_stamps SET balance = 50, version = version + 1 WHERE id = ?", id)
}

// A statement that fails, or is rolled back, puts back what it changed.
func TestEmbeddedPointer_rollback(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&copiedStamp{}})
	a := stand.Made(t, db, copiedStamp{Balance: 1, Stamp: &Stamp{Note: "x"}})
	older := a
	_ = db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Model(&a).Updates(map[string]any{"balance": 2, "note": "y"}))
		return errBoom
	})
	for _, one := range []copiedStamp{a, older} {
		stand.Equal(t, "after a rollback", [3]any{one.Balance, one.Note, one.Version}, [3]any{int64(1), "x", int64(1)})
	}
	rivalOfStamps(db, a.ID)
	stand.MustStale(t, db.Model(&a).Updates(map[string]any{"balance": 2, "note": "y"}).Error)
	for _, one := range []copiedStamp{a, older} {
		stand.Equal(t, "after a conflict", [3]any{one.Balance, one.Note, one.Version}, [3]any{int64(1), "x", int64(1)})
	}
}

type pointedAccount struct {
	ID      *int64
	Balance *int64
	Version *int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A program may renew the pointers of a struct, as a deep copy does. A rollback restores what is behind them, and writes into
// nothing that the struct no longer points to.
func TestV12_PointersThatTheCallerRenews(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&pointedAccount{}})
	balance := int64(1)
	a := stand.Made(t, db, pointedAccount{Balance: &balance})
	before := a
	var left pointedAccount
	if err := db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Model(&a).Update("balance", 2))
		left = a
		id, balance, version := *a.ID, *a.Balance, *a.Version
		a = pointedAccount{&id, &balance, &version}
		return errBoom
	}); !errors.Is(err, errBoom) {
		t.Fatal(err)
	}
	stand.Equal(t, "version", *a.Version, 1)
	stand.Equal(t, "balance", *a.Balance, 1)
	stand.Equal(t, "the old version", *before.Version, 1)
	stand.Equal(t, "what the program kept", *left.Version, 2)
	if a.Version == before.Version || a.Balance == before.Balance {
		t.Error("it shares its pointers with the struct of before again")
	}
	stand.MustDo(t, db.Exec("UPDATE pointed_accounts SET balance = 50, version = version + 1"))
	stand.MustStale(t, db.Save(&a).Error)
}
