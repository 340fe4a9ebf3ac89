package rollbacks_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type seeded struct {
	ID          int64
	A, B        string
	LockVersion int32 `gormlock:"version,rails"`
}

type foundSeed struct {
	ID      int64
	A, B    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func (*foundSeed) AfterFind(*gorm.DB) error { return nil }
func (*foundSeed) AfterSave(*gorm.DB) error { return nil }

// A statement that leaves its struct unread says nothing of other structs that are unread. A rollback gives none of them a version.
func TestRollback_besideAStructThatWasLeftUnread(t *testing.T) {
	t.Parallel()
	skip := clause.OnConflict{DoNothing: true}
	bulk := func(tx *gorm.DB, model any, id int64) {
		stand.Must(t, tx.Model(model).Where("id = ?", id).Update("b", "discarded").Error)
	}
	undone := func(nested bool, db *gorm.DB, body func(tx *gorm.DB)) {
		run := func(tx *gorm.DB) error { body(tx); return errUndo }
		if nested {
			_ = db.Transaction(func(tx *gorm.DB) error { _ = tx.Transaction(run); return nil })
			return
		}
		_ = db.Transaction(run)
	}
	stand.OnBoth(t, []any{&seeded{}, &foundSeed{}}, func(t *testing.T, db *gorm.DB) {
		for _, nested := range []bool{false, true} {
			row := stand.Made(t, db, seeded{A: "a", B: "b"})
			var read seeded
			undone(nested, db, func(tx *gorm.DB) {
				bulk(tx, &seeded{}, row.ID)
				stand.Must(t, tx.Clauses(skip).Create(&seeded{ID: row.ID, A: "seed"}).Error)
				stand.Must(t, tx.First(&read, row.ID).Error)
			})
			read.A = "mine"
			stand.MustBeUnread(t, db.Save(&read).Error)

			again := stand.Row[seeded](t, db, row.ID)
			undone(nested, db, func(tx *gorm.DB) {
				bulk(tx, &seeded{}, row.ID)
				stand.Must(t, tx.Clauses(gormlock.IgnoreVersion()).Model(&again).Update("a", "w").Error)
				stand.Must(t, tx.First(&again, row.ID).Error)
			})
			stand.MustBeUnread(t, db.Save(&again).Error)

			written, other := stand.Row[seeded](t, db, row.ID), seeded{ID: row.ID, A: "w", B: "other"}
			undone(nested, db, func(tx *gorm.DB) {
				stand.Must(t, tx.Clauses(skip).Create(&other).Error)
				stand.Must(t, tx.Clauses(gormlock.IgnoreVersion()).Model(&written).Update("a", "w").Error)
			})
			stand.Equal(t, "another struct that is unread", other.A+", "+other.B, "w, other")
			stand.Equal(t, "the one that was written", written, stand.Row[seeded](t, db, row.ID))

			whole, copied := stand.Row[seeded](t, db, row.ID), seeded{}
			whole.A = "discarded"
			undone(nested, db, func(tx *gorm.DB) {
				stand.Must(t, tx.Clauses(gormlock.IgnoreVersion()).Save(&whole).Error)
				stand.Must(t, tx.First(&copied, row.ID).Error) // as the row was written
			})
			stand.MustBeUnread(t, db.Save(&copied).Error)

			left := stand.Row[seeded](t, db, row.ID)
			undone(nested, db, func(tx *gorm.DB) {
				stand.Must(t, tx.Clauses(skip).Create(&left).Error) // and nothing happens to it since
			})
			left.A = "mine"
			stand.Must(t, db.Save(&left).Error)

			found := stand.Made(t, db, foundSeed{A: "a", B: "b"})
			mine, seed := stand.Row[foundSeed](t, db, found.ID), foundSeed{ID: found.ID, A: "seed", B: "seed"}
			undone(nested, db, func(tx *gorm.DB) {
				stand.Must(t, tx.Clauses(skip).Create(&seed).Error)
				stand.Must(t, tx.Clauses(gormlock.IgnoreVersion()).Save([]*foundSeed{&mine}).Error)
			})
			stand.MustBeUnread(t, db.Save(&seed).Error)
			stand.Equal(t, "row", stand.Row[foundSeed](t, db, found.ID).A, "a")
		}
	})
}
