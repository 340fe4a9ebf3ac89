package gormlock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

var errBoom = errors.New("boom")

// failing has a hook that fails when it is told to.
type failing struct {
	ID      int64
	Balance int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
	Fail    bool  `gorm:"-"`
}

func (f *failing) AfterUpdate(*gorm.DB) error {
	if f.Fail {
		return errBoom
	}
	return nil
}

// V1: whatever rolls a transaction back, the struct is at the version its row has, so that a struct that another writer
// overtook is stale and never overwrites.
func TestV1_RollbackGivesVersionsBack(t *testing.T) {
	t.Parallel()
	ways := map[string]func(t *testing.T, db *gorm.DB, f *failing){
		"a hook fails in the implicit transaction": func(t *testing.T, db *gorm.DB, f *failing) {
			f.Fail = true
			err := db.Model(f).Update("balance", 90).Error
			f.Fail = false
			if !errors.Is(err, errBoom) {
				t.Fatal(err)
			}
		},
		"db.Transaction": func(t *testing.T, db *gorm.DB, f *failing) {
			err := db.Transaction(func(tx *gorm.DB) error {
				must(t, tx.Model(f).Update("balance", 90).Error)
				equal(t, "inside", f.Version, 2)
				must(t, tx.Model(f).Update("balance", 91).Error)
				f.Balance = 92
				must(t, tx.Save(f).Error)
				equal(t, "inside", f.Version, 4)
				return errBoom
			})
			if !errors.Is(err, errBoom) {
				t.Fatal(err)
			}
		},
		"gormlock.Transaction": func(t *testing.T, db *gorm.DB, f *failing) {
			err := gormlock.Transaction(db, func(tx *gorm.DB) error {
				must(t, tx.Model(f).Update("balance", gorm.Expr("balance + 1")).Error)
				equal(t, "inside", f.Version, 2)
				return errBoom
			})
			if !errors.Is(err, errBoom) {
				t.Fatal(err)
			}
		},
		"Begin and Rollback": func(t *testing.T, db *gorm.DB, f *failing) {
			tx := db.Begin()
			must(t, tx.Model(f).Updates(map[string]any{"balance": 90}).Error)
			must(t, tx.Rollback().Error)
		},
		"a savepoint": func(t *testing.T, db *gorm.DB, f *failing) {
			must(t, db.Transaction(func(tx *gorm.DB) error {
				if err := tx.Transaction(func(tx *gorm.DB) error {
					must(t, tx.Model(f).Update("balance", 90).Error)
					return errBoom
				}); !errors.Is(err, errBoom) {
					t.Fatal(err)
				}
				equal(t, "after the savepoint", f.Version, 1)
				return nil
			}))
		},
		"a ctx that ended": func(t *testing.T, db *gorm.DB, f *failing) {
			ctx, cancel := context.WithCancel(context.Background())
			tx := db.WithContext(ctx).Begin()
			must(t, tx.Model(f).Update("balance", 90).Error)
			cancel()
			if err := tx.Commit().Error; err == nil {
				t.Fatal("committed")
			}
		},
		"a panic": func(t *testing.T, db *gorm.DB, f *failing) {
			defer func() { _ = recover() }()
			_ = db.Transaction(func(tx *gorm.DB) error {
				must(t, tx.Model(f).Update("balance", 90).Error)
				panic(errBoom)
			})
		},
	}
	for name, roll := range ways {
		for _, prepared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/prepared=%v", name, prepared), func(t *testing.T) {
				t.Parallel()
				var opts []pgtest.Option
				if prepared {
					opts = append(opts, pgtest.PrepareStmt())
				}
				db := versioned(t, []any{&failing{}}, opts...)
				f := failing{Balance: 100}
				must(t, db.Create(&f).Error)
				old := f
				roll(t, db, &f)
				equal(t, "version", f.Version, 1)
				if f.Balance != 92 {
					equal(t, "struct", f, old)
				}
				must(t, db.Model(&failing{ID: f.ID, Version: 1}).Update("balance", 55).Error) // the rival
				f.Balance = 1
				mustStale(t, db.Save(&f).Error)
				mustStale(t, db.Save(&f).Error)
				equal(t, "row", row[failing](t, db, f.ID).Balance, 55)
			})
		}
	}
}

// V1: a struct that was new is new again.
func TestV1_RollbackGivesKeysBack(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&account{}}, rollbackGivesKeysBack)
}

func rollbackGivesKeysBack(t *testing.T, db *gorm.DB) {
	one, many := account{Balance: 1}, []*account{{Balance: 2}, {Balance: 3}}
	_ = db.Transaction(func(tx *gorm.DB) error {
		must(t, tx.Create(&one).Error)
		must(t, tx.Create(&many).Error)
		must(t, tx.Model(&one).Update("balance", 9).Error)
		return errBoom
	})
	equal(t, "one", one, account{Balance: 1})
	equal(t, "many", *many[0], account{Balance: 2})
	equal(t, "many", *many[1], account{Balance: 3})
	must(t, db.Save(&one).Error)
	equal(t, "stored", row[account](t, db, one.ID), one)
}

type soft struct {
	ID        int64
	Name      string
	Version   *int32 `gormlock:"version"`
	DeletedAt gorm.DeletedAt
}

// G12, R24: a soft delete is a checked update; a soft-deleted row is gone; a restore is a checked update.
func TestG12_SoftDelete(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&soft{}}, softDelete)
}

func softDelete(t *testing.T, db *gorm.DB) {
	s := soft{Name: "a"}
	must(t, db.Create(&s).Error)
	equal(t, "version", *s.Version, 1)
	old := s
	must(t, db.Model(&s).Update("name", "b").Error)
	equal(t, "shared pointer", *old.Version, 1)
	mustStale(t, db.Delete(&old).Error)
	equal(t, "deleted_at", old.DeletedAt.Valid, false)
	must(t, db.Delete(&s).Error)
	equal(t, "version", *s.Version, 3)
	equal(t, "row", *row[soft](t, db, s.ID).Version, 3)
	equal(t, "deleted", mustBeStale(t, db.Model(&s).Update("name", "c").Error).Deleted, true)
	must(t, db.Unscoped().Model(&s).Update("deleted_at", nil).Error)
	equal(t, "restored", *s.Version, 4)
	must(t, db.Delete(&soft{}, s.ID).Error)
	equal(t, "bulk", *row[soft](t, db, s.ID).Version, 5)
	mustStale(t, db.Unscoped().Delete(&s).Error)
	*s.Version = 5
	must(t, db.Unscoped().Delete(&s).Error)
}

// V1: what a caller does to his slice inside the transaction does not hide its structs from a rollback.
func TestV1_RollbackFindsStructsOfAChangedSlice(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&account{}})
	for what, change := range map[string]func(values *[]account, pointers *[]*account){
		"swapped": func(values *[]account, pointers *[]*account) {
			v, p := *values, *pointers
			v[0], v[1], p[0], p[1] = v[1], v[0], p[1], p[0]
		},
		"cut":       func(values *[]account, pointers *[]*account) { *values, *pointers = (*values)[:0], nil },
		"a nil":     func(_ *[]account, pointers *[]*account) { (*pointers)[0] = nil },
		"appended":  func(values *[]account, _ *[]*account) { *values = append(*values, account{}) },
		"unchanged": func(*[]account, *[]*account) {},
	} {
		values, pointers := []account{{Balance: 1}, {Balance: 2}}, []*account{{Balance: 3}, {Balance: 4}}
		must(t, db.Create(&values).Error)
		must(t, db.Create(&pointers).Error)
		second := pointers[1]
		held := values[:2:2]
		_ = db.Transaction(func(tx *gorm.DB) error {
			must(t, tx.Model(&values).Update("balance", 5).Error)
			must(t, tx.Model(&pointers).Update("balance", 6).Error)
			change(&values, &pointers)
			return errBoom
		})
		for i := range held {
			equal(t, what, held[i], row[account](t, db, held[i].ID))
		}
		equal(t, what, *second, row[account](t, db, second.ID))
	}
}
