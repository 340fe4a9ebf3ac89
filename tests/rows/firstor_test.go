package rows_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestFirstOrCreate_ofALockedRow: no lock makes a second row of one that is there and locked.
func TestFirstOrCreate_ofALockedRow(t *testing.T) {
	t.Parallel()
	db := seats(t)
	stand.MustDo(t, db.Model(&seat{ID: 1}).Update("name", "A1"))
	for call, does := range map[string]func(tx *gorm.DB) error{
		"FirstOrCreate": func(tx *gorm.DB) error { return tx.Where(&seat{Name: "A1"}).FirstOrCreate(&seat{}).Error },
		"FirstOrCreate, Assign": func(tx *gorm.DB) error {
			return tx.Where(&seat{Name: "A1"}).Assign(&seat{HallID: 1}).FirstOrCreate(&seat{}).Error
		},
		"FirstOrInit": func(tx *gorm.DB) error { return tx.Where(&seat{Name: "A1"}).FirstOrInit(&seat{}).Error },
	} {
		stand.InTx(t, db, func(other *gorm.DB) {
			stand.MustDo(t, other.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Find(&[]seat{}, "name = 'A1'"))
			stand.InTx(t, db, func(tx *gorm.DB) {
				for door, locked := range map[string]*gorm.DB{
					"scope": tx.Scopes(gormlock.WithSkipLocked()), "clause": tx.Clauses(gormlock.SkipLocked()),
				} {
					if err := does(locked); err == nil || !strings.Contains(err.Error(), "use Try") {
						t.Errorf("%s, %s: %v", call, door, err)
					}
				}
				err := does(tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Try())))
				if !errors.Is(err, gormlock.ErrNotAcquired) {
					t.Errorf("%s, Try: %v", call, err)
				}
				var n int64
				stand.MustDo(t, tx.Model(&seat{}).Where("name = 'A1'").Count(&n))
				stand.Equal(t, call+": rows", n, 1)
			})
		})
	}
}

// FirstOrCreate takes a row lock: the row that it finds is locked, and the one that it creates is the transaction's own.
func TestFirstOrCreate_withARowLock(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&hall{}, &seat{}, &ticket{}, &stub{}})
	stand.InTx(t, db, func(tx *gorm.DB) {
		for range 2 {
			stand.Must(t, tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Where(&seat{Name: "A1"}).FirstOrCreate(&seat{Hall: &hall{}}).Error)
		}
		var n int64
		stand.Must(t, tx.Model(&seat{}).Count(&n).Error)
		stand.Equal(t, "seats", n, 1)
	})
}
