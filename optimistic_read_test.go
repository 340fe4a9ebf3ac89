package gormlock_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
)

// V1: what was read in a transaction of its own writes was never there once they are rolled back. Its version is the
// one that the next writer makes, so it must not pass for read.
func TestV1_ReadsOfRolledBackWrites(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&account{}}, readsOfRolledBackWrites)
}

func readsOfRolledBackWrites(t *testing.T, db *gorm.DB) {
	reads := map[string]func(tx *gorm.DB, id int64) *account{
		"First after a bulk update": func(tx *gorm.DB, id int64) *account {
			var got account
			must(t, tx.Model(&account{}).Where("id = ?", id).Update("balance", 50).Error)
			must(t, tx.First(&got, id).Error)
			return &got
		},
		"Find of many": func(tx *gorm.DB, id int64) *account {
			var got []*account
			must(t, tx.Model(&account{ID: id, Version: 1}).Update("balance", 50).Error)
			must(t, tx.Find(&got, id).Error)
			return got[0]
		},
		"the rows that a bulk update returns": func(tx *gorm.DB, id int64) *account {
			var got []account
			must(t, tx.Model(&got).Clauses(clause.Returning{}).Where("id = ?", id).Update("balance", 50).Error)
			return &got[0]
		},
		"read again after its own update": func(tx *gorm.DB, id int64) *account {
			got := account{ID: id, Version: 1}
			must(t, tx.Model(&got).Update("balance", 50).Error)
			must(t, tx.First(&got).Error)
			return &got
		},
		"read, then updated": func(tx *gorm.DB, id int64) *account {
			got := account{ID: id}
			must(t, tx.Model(&account{ID: id, Version: 1}).Update("balance", 50).Error)
			must(t, tx.First(&got).Error)
			must(t, tx.Model(&got).Update("balance", 51).Error)
			return &got
		},
		"under a savepoint that stays": func(tx *gorm.DB, id int64) *account {
			got := account{ID: id}
			must(t, tx.Model(&account{ID: id, Version: 1}).Update("balance", 50).Error)
			must(t, tx.Transaction(func(tx *gorm.DB) error { return tx.First(&got).Error }))
			return &got
		},
	}
	for name, read := range reads {
		a, other := account{Balance: 1}, account{Balance: 2}
		must(t, db.Create(&a).Error)
		must(t, db.Create(&other).Error)
		var got *account
		untouched := account{ID: other.ID}
		_ = db.Transaction(func(tx *gorm.DB) error {
			got = read(tx, a.ID)
			must(t, tx.First(&untouched).Error)
			return errBoom
		})
		rival := a
		for range 2 {
			must(t, db.Model(&rival).Update("balance", 55).Error)
			if err := db.Save(got).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Error(name, got, err)
			}
			if err := db.Model(got).Update("balance", 1).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Error(name, got, err)
			}
		}
		equal(t, name, row[account](t, db, a.ID), rival)
		if name != "First after a bulk update" && name != "the rows that a bulk update returns" {
			must(t, db.Save(&untouched).Error) // it was read as it is
		}

		var kept *account
		must(t, db.Create(&account{}).Error)
		last := account{}
		must(t, db.Last(&last).Error)
		must(t, db.Transaction(func(tx *gorm.DB) error {
			kept = read(tx, last.ID)
			return nil
		}))
		must(t, db.Save(kept).Error) // what was committed was read
	}
}

// V1: where 0 is a version too, no number that the row can have is left.
func TestV1_ReadsOfRolledBackWrites_rails(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&railsRow{}})
	a := railsRow{Name: "a"}
	must(t, db.Create(&a).Error)
	var got railsRow
	_ = db.Transaction(func(tx *gorm.DB) error {
		must(t, tx.Model(&a).Update("name", "b").Error)
		must(t, tx.First(&got, a.ID).Error)
		return errBoom
	})
	mustStale(t, db.Save(&got).Error)
	mustStale(t, db.Model(&got).Update("name", "c").Error)
	must(t, db.Model(&a).Update("name", "rival").Error)
	mustStale(t, db.Save(&got).Error)
	equal(t, "row", row[railsRow](t, db, a.ID), a)
}

type shelf struct {
	ID    int64
	Books []shelfBook `gorm:"foreignKey:ShelfID"`
}

type shelfBook struct {
	ID      int64
	ShelfID int64
	Title   string
	Version int64 `gormlock:"version"`
}

// V1: what is preloaded is read too.
func TestV1_PreloadsOfRolledBackWrites(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&shelf{}, &shelfBook{}})
	s := shelf{Books: []shelfBook{{Title: "a"}, {Title: "b"}}}
	must(t, db.Create(&s).Error)
	got := shelf{ID: s.ID}
	_ = db.Transaction(func(tx *gorm.DB) error {
		must(t, tx.Model(&s.Books[0]).Update("title", "c").Error)
		must(t, tx.Preload("Books", func(q *gorm.DB) *gorm.DB { return q.Order("id") }).First(&got).Error)
		return errBoom
	})
	must(t, db.Model(&s.Books[0]).Update("title", "rival").Error)
	if err := db.Save(&got.Books[0]).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
		t.Error(got, err)
	}
	must(t, db.Save(&got.Books[1]).Error)
}
