package versions_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
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
				stand.Must(t, tx.Model(f).Update("balance", 90).Error)
				stand.Equal(t, "inside", f.Version, 2)
				stand.Must(t, tx.Model(f).Update("balance", 91).Error)
				f.Balance = 92
				stand.Must(t, tx.Save(f).Error)
				stand.Equal(t, "inside", f.Version, 4)
				return errBoom
			})
			if !errors.Is(err, errBoom) {
				t.Fatal(err)
			}
		},
		"gormlock.Transaction": func(t *testing.T, db *gorm.DB, f *failing) {
			err := gormlock.Transaction(db, func(tx *gorm.DB) error {
				stand.Must(t, tx.Model(f).Update("balance", gorm.Expr("balance + 1")).Error)
				stand.Equal(t, "inside", f.Version, 2)
				return errBoom
			})
			if !errors.Is(err, errBoom) {
				t.Fatal(err)
			}
		},
		"Begin and Rollback": func(t *testing.T, db *gorm.DB, f *failing) {
			tx := db.Begin()
			stand.Must(t, tx.Model(f).Updates(map[string]any{"balance": 90}).Error)
			stand.Must(t, tx.Rollback().Error)
		},
		"a savepoint": func(t *testing.T, db *gorm.DB, f *failing) {
			stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
				if err := tx.Transaction(func(tx *gorm.DB) error {
					stand.Must(t, tx.Model(f).Update("balance", 90).Error)
					return errBoom
				}); !errors.Is(err, errBoom) {
					t.Fatal(err)
				}
				stand.Equal(t, "after the savepoint", f.Version, 1)
				return nil
			}))
		},
		"a ctx that ended": func(t *testing.T, db *gorm.DB, f *failing) {
			ctx, cancel := context.WithCancel(context.Background())
			tx := db.WithContext(ctx).Begin()
			stand.Must(t, tx.Model(f).Update("balance", 90).Error)
			cancel()
			if err := tx.Commit().Error; err == nil {
				t.Fatal("committed")
			}
		},
		"a panic": func(t *testing.T, db *gorm.DB, f *failing) {
			defer func() { _ = recover() }()
			_ = db.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, tx.Model(f).Update("balance", 90).Error)
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
				db := stand.Versioned(t, []any{&failing{}}, opts...)
				f := stand.Made(t, db, failing{Balance: 100})
				old := f
				roll(t, db, &f)
				stand.Equal(t, "version", f.Version, 1)
				if f.Balance != 92 {
					stand.Equal(t, "struct", f, old)
				}
				stand.Must(t, db.Model(&failing{ID: f.ID, Version: 1}).Update("balance", 55).Error) // the rival
				f.Balance = 1
				stand.MustStale(t, db.Save(&f).Error)
				stand.MustStale(t, db.Save(&f).Error)
				stand.Equal(t, "row", stand.Row[failing](t, db, f.ID).Balance, 55)
			})
		}
	}
}

// V1: a struct that was new is new again.
func TestV1_RollbackGivesKeysBack(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&stand.Account{}}, rollbackGivesKeysBack)
}

func rollbackGivesKeysBack(t *testing.T, db *gorm.DB) {
	one, many := stand.Account{Balance: 1}, []*stand.Account{{Balance: 2}, {Balance: 3}}
	_ = db.Transaction(func(tx *gorm.DB) error {
		stand.Must(t, tx.Create(&one).Error)
		stand.Must(t, tx.Create(&many).Error)
		stand.Must(t, tx.Model(&one).Update("balance", 9).Error)
		return errBoom
	})
	stand.Equal(t, "one", one, stand.Account{Balance: 1})
	stand.Equal(t, "many", *many[0], stand.Account{Balance: 2})
	stand.Equal(t, "many", *many[1], stand.Account{Balance: 3})
	stand.Must(t, db.Save(&one).Error)
	stand.Equal(t, "stored", stand.Row[stand.Account](t, db, one.ID), one)
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
	stand.OnEachAndMySQL(t, []any{&soft{}}, softDelete)
}

func softDelete(t *testing.T, db *gorm.DB) {
	s := stand.Made(t, db, soft{Name: "a"})
	stand.Equal(t, "version", *s.Version, 1)
	old := s
	stand.Must(t, db.Model(&s).Update("name", "b").Error)
	stand.Equal(t, "shared pointer", *old.Version, 1)
	stand.MustStale(t, db.Delete(&old).Error)
	stand.Equal(t, "deleted_at", old.DeletedAt.Valid, false)
	stand.Must(t, db.Delete(&s).Error)
	stand.Equal(t, "version", *s.Version, 3)
	stand.Equal(t, "row", *stand.Row[soft](t, db, s.ID).Version, 3)
	stand.Equal(t, "deleted", stand.MustBeStale(t, db.Model(&s).Update("name", "c").Error).Deleted, true)
	stand.Must(t, db.Unscoped().Model(&s).Update("deleted_at", nil).Error)
	stand.Equal(t, "restored", *s.Version, 4)
	stand.Must(t, db.Delete(&soft{}, s.ID).Error)
	stand.Equal(t, "bulk", *stand.Row[soft](t, db, s.ID).Version, 5)
	stand.MustStale(t, db.Unscoped().Delete(&s).Error)
	*s.Version = 5
	stand.Must(t, db.Unscoped().Delete(&s).Error)
}

// V1: what a caller does to his slice inside the transaction does not hide its structs from a rollback.
func TestV1_RollbackFindsStructsOfAChangedSlice(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	for what, change := range map[string]func(values *[]stand.Account, pointers *[]*stand.Account){
		"swapped": func(values *[]stand.Account, pointers *[]*stand.Account) {
			v, p := *values, *pointers
			v[0], v[1], p[0], p[1] = v[1], v[0], p[1], p[0]
		},
		"cut":       func(values *[]stand.Account, pointers *[]*stand.Account) { *values, *pointers = (*values)[:0], nil },
		"a nil":     func(_ *[]stand.Account, pointers *[]*stand.Account) { (*pointers)[0] = nil },
		"appended":  func(values *[]stand.Account, _ *[]*stand.Account) { *values = append(*values, stand.Account{}) },
		"unchanged": func(*[]stand.Account, *[]*stand.Account) {},
	} {
		values, pointers := []stand.Account{{Balance: 1}, {Balance: 2}}, []*stand.Account{{Balance: 3}, {Balance: 4}}
		stand.Must(t, db.Create(&values).Error)
		stand.Must(t, db.Create(&pointers).Error)
		second := pointers[1]
		held := values[:2:2]
		_ = db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, tx.Model(&values).Update("balance", 5).Error)
			stand.Must(t, tx.Model(&pointers).Update("balance", 6).Error)
			change(&values, &pointers)
			return errBoom
		})
		for i := range held {
			stand.Equal(t, what, held[i], stand.Row[stand.Account](t, db, held[i].ID))
		}
		stand.Equal(t, what, *second, stand.Row[stand.Account](t, db, second.ID))
	}
}
