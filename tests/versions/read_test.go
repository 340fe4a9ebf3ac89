package versions_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// V1: what was read in a transaction of its own writes was never there once they are rolled back. Its version is the
// one that the next writer makes, so it must not pass for read.
func TestV1_ReadsOfRolledBackWrites(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&stand.Account{}}, readsOfRolledBackWrites)
}

func readsOfRolledBackWrites(t *testing.T, db *gorm.DB) {
	reads := map[string]func(tx *gorm.DB, id int64) *stand.Account{
		"First after a bulk update": func(tx *gorm.DB, id int64) *stand.Account {
			var got stand.Account
			stand.Must(t, tx.Model(&stand.Account{}).Where("id = ?", id).Update("balance", 50).Error)
			stand.Must(t, tx.First(&got, id).Error)
			return &got
		},
		"Find of many": func(tx *gorm.DB, id int64) *stand.Account {
			var got []*stand.Account
			stand.Must(t, tx.Model(&stand.Account{ID: id, Version: 1}).Update("balance", 50).Error)
			stand.Must(t, tx.Find(&got, id).Error)
			return got[0]
		},
		"the rows that a bulk update returns": func(tx *gorm.DB, id int64) *stand.Account {
			var got []stand.Account
			stand.Must(t, tx.Model(&got).Clauses(clause.Returning{}).Where("id = ?", id).Update("balance", 50).Error)
			return &got[0]
		},
		"read again after its own update": func(tx *gorm.DB, id int64) *stand.Account {
			got := stand.Account{ID: id, Version: 1}
			stand.Must(t, tx.Model(&got).Update("balance", 50).Error)
			stand.Must(t, tx.First(&got).Error)
			return &got
		},
		"read, then updated": func(tx *gorm.DB, id int64) *stand.Account {
			got := stand.Account{ID: id}
			stand.Must(t, tx.Model(&stand.Account{ID: id, Version: 1}).Update("balance", 50).Error)
			stand.Must(t, tx.First(&got).Error)
			stand.Must(t, tx.Model(&got).Update("balance", 51).Error)
			return &got
		},
		"under a savepoint that stays": func(tx *gorm.DB, id int64) *stand.Account {
			got := stand.Account{ID: id}
			stand.Must(t, tx.Model(&stand.Account{ID: id, Version: 1}).Update("balance", 50).Error)
			stand.Must(t, tx.Transaction(func(tx *gorm.DB) error { return tx.First(&got).Error }))
			return &got
		},
	}
	before := stand.Made(t, db, stand.Account{Balance: 3})
	for name, read := range reads {
		a, other := stand.Account{Balance: 1}, stand.Account{Balance: 2}
		stand.Must(t, db.Create(&a).Error)
		stand.Must(t, db.Create(&other).Error)
		var got *stand.Account
		untouched := stand.Account{ID: other.ID}
		_ = db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, tx.First(&before, before.ID).Error)
			got = read(tx, a.ID)
			stand.Must(t, tx.First(&untouched).Error)
			return errBoom
		})
		rival := a
		for range 2 {
			stand.Must(t, db.Model(&rival).Update("balance", 55).Error)
			if err := db.Save(got).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Error(name, got, err)
			}
			if err := db.Model(got).Update("balance", 1).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
				t.Error(name, got, err)
			}
		}
		stand.Equal(t, name, stand.Row[stand.Account](t, db, a.ID), rival)
		stand.Must(t, db.Save(&before).Error)                                              // it was read before anything was written
		if err := db.Save(&untouched).Error; !errors.Is(err, gormlock.ErrVersionMissing) { // a trigger may have written it
			t.Error(name, untouched, err)
		}

		var kept *stand.Account
		stand.Must(t, db.Create(&stand.Account{}).Error)
		last := stand.Account{}
		stand.Must(t, db.Last(&last).Error)
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			kept = read(tx, last.ID)
			return nil
		}))
		stand.Must(t, db.Save(kept).Error) // what was committed was read
	}
}

// V1: where 0 is a version too, no number that the row can have is left.
func TestV1_ReadsOfRolledBackWrites_rails(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, railsRow{Name: "a"})
	var got railsRow
	_ = db.Transaction(func(tx *gorm.DB) error {
		stand.Must(t, tx.Model(&a).Update("name", "b").Error)
		stand.Must(t, tx.First(&got, a.ID).Error)
		return errBoom
	})
	stand.MustBeUnread(t, db.Save(&got).Error)
	stand.MustBeUnread(t, db.Model(&got).Update("name", "c").Error)
	stand.Must(t, db.Model(&a).Update("name", "rival").Error)
	stand.MustBeUnread(t, db.Save(&got).Error)
	stand.Equal(t, "row", stand.Row[railsRow](t, db, a.ID), a)
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
	db := stand.Versioned(t, []any{&shelf{}, &shelfBook{}})
	s := stand.Made(t, db, shelf{Books: []shelfBook{{Title: "a"}, {Title: "b"}}})
	got := shelf{ID: s.ID}
	_ = db.Transaction(func(tx *gorm.DB) error {
		stand.Must(t, tx.Model(&s.Books[0]).Update("title", "c").Error)
		stand.Must(t, tx.Preload("Books", func(q *gorm.DB) *gorm.DB { return q.Order("id") }).First(&got).Error)
		return errBoom
	})
	stand.Must(t, db.Model(&s.Books[0]).Update("title", "rival").Error)
	if err := db.Save(&got.Books[0]).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
		t.Error(got, err)
	}
	if err := db.Save(&got.Books[1]).Error; !errors.Is(err, gormlock.ErrVersionMissing) { // a trigger may have written it
		t.Error(got, err)
	}
}
