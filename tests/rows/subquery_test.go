package rows_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// lockedSeats is a sub-query that locks the seats it reads.
func lockedSeats(db *gorm.DB) *gorm.DB {
	return db.Model(&seat{}).Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Select("id")
}

// aroundLocked are queries around it.
var aroundLocked = map[string]func(db, locked *gorm.DB) error{
	"Find": func(db, locked *gorm.DB) error { return db.Where("id IN (?)", locked).Find(&[]seat{}).Error },
	"Find of a table": func(db, locked *gorm.DB) error {
		return db.Table("(?) AS s", locked).Find(&[]map[string]any{}).Error
	},
	"Find, joined": func(db, locked *gorm.DB) error {
		return db.Joins("JOIN (?) l ON l.id = seats.id", locked).Find(&[]seat{}).Error
	},
	"Find, deeper": func(db, locked *gorm.DB) error {
		return db.Where("id IN (?)", db.Model(&seat{}).Where("id IN (?)", locked).Select("id")).Find(&[]seat{}).Error
	},
	"Scan": func(db, locked *gorm.DB) error {
		return db.Model(&seat{}).Where("id IN (?)", locked).Scan(&[]seat{}).Error
	},
	"Row": func(db, locked *gorm.DB) error {
		var n int64
		return db.Model(&seat{}).Where("id IN (?)", locked).Select("count(*)").Row().Scan(&n)
	},
	"Count": func(db, locked *gorm.DB) error {
		var n int64
		return db.Model(&seat{}).Where("id IN (?)", locked).Count(&n).Error
	},
	"Raw, Scan": func(db, locked *gorm.DB) error {
		return db.Raw("SELECT * FROM seats WHERE id IN (?)", locked).Scan(&[]seat{}).Error
	},
	"Raw, Find": func(db, locked *gorm.DB) error {
		return db.Raw("SELECT * FROM seats WHERE id IN (?)", locked).Find(&[]seat{}).Error
	},
}

// writesAroundLocked are writes around it, which are transactions by themselves.
var writesAroundLocked = map[string]func(db, locked *gorm.DB) error{
	"Update": func(db, locked *gorm.DB) error {
		return db.Model(&seat{}).Where("id IN (?)", locked).Update("name", "a").Error
	},
	"Update without a transaction": func(db, locked *gorm.DB) error {
		return db.Session(&gorm.Session{SkipDefaultTransaction: true}).Model(&seat{}).Where("id IN (?)", locked).Update("name", "a").Error
	},
	"Exec": func(db, locked *gorm.DB) error {
		return db.Exec("UPDATE seats SET name = 'a' WHERE id IN (?)", locked).Error
	},
	"Raw, Scan": func(db, locked *gorm.DB) error {
		return db.Raw("UPDATE seats SET name = 'a' WHERE id IN (?) RETURNING *", locked).Scan(&[]seat{}).Error
	},
	"Raw, Find": func(db, locked *gorm.DB) error {
		return db.Raw("UPDATE seats SET name = 'a' WHERE id IN (?) RETURNING *", locked).Find(&[]seat{}).Error
	},
}

// A row lock of a sub-query ends with the query around it if that is outside of a transaction.
func TestRowLock_ofASubQueryOutside(t *testing.T) {
	t.Parallel()
	stand.EachMode(t, func(t *testing.T, opts ...pgtest.Option) {
		t.Helper()
		db := stand.Versioned(t, []any{&hall{}, &seat{}, &ticket{}, &stub{}}, opts...)
		stand.MustDo(t, db.Create(&seat{Hall: &hall{}}))
		for name, read := range aroundLocked {
			if err := read(db, lockedSeats(db)); !errors.Is(err, gormlock.ErrNoTransaction) {
				t.Errorf("%s: %v", name, err)
			}
			if err := db.Transaction(func(tx *gorm.DB) error {
				return errors.Join(read(tx, lockedSeats(tx)), read(tx, lockedSeats(db)))
			}); err != nil {
				t.Errorf("%s, in a transaction: %v", name, err)
			}
		}
		for name, write := range writesAroundLocked {
			if err := write(db, lockedSeats(db)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
