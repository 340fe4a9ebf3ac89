package merges_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// book is the root of its chapters.
type book struct {
	ID      int64
	Title   string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type chapter struct {
	ID      int64
	Text    string
	BookID  *int64
	Book    *book `gormlock:"root"`
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// A merge chapters associations out: the root that a struct holds is not compared. It moves, and what is held of it follows.
func TestSaveMerged_ofAPart(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&book{}, &chapter{}}, func(t *testing.T, db *gorm.DB) {
		b := book{}
		stand.Must(t, db.Create(&b).Error)
		chapters := []chapter{{BookID: &b.ID}, {BookID: &b.ID}}
		stand.Must(t, db.Create(&chapters).Error)
		version := func() int64 { return stand.Row[book](t, db, b.ID).Version }
		read := func() (base, mine chapter) {
			stand.Must(t, db.Preload("Book").First(&base, chapters[0].ID).Error)
			return base, base
		}

		base, mine := read()
		mine.Text = "mine"
		was := version()
		stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
		stand.Equal(t, "the root", version(), was+1)
		stand.Equal(t, "what is held of it", mine.Book.Version, was+1)
		mine.Text = "again"
		stand.Must(t, db.Save(&mine).Error)

		base, mine = read()
		was = mine.Book.Version
		stand.Must(t, db.Model(&chapter{}).Where("id = ?", chapters[1].ID).Update("text", "a sibling").Error)
		mine.Text = "third"
		stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
		stand.Equal(t, "the root", version(), was+2)
		stand.Equal(t, "a stale struct of it", mine.Book.Version, was)
		stand.Equal(t, "stored", stand.Row[chapter](t, db, mine.ID).Text, "third")
		mine.Text = "fourth"
		stand.MustStale(t, db.Save(&mine).Error)

		base, mine = read()
		was = mine.Book.Version
		back := errors.New("back")
		if err := db.Transaction(func(tx *gorm.DB) error {
			mine.Text = "fifth"
			stand.Must(t, gormlock.SaveMerged(tx, &mine, &base))
			stand.Equal(t, "in the transaction", mine.Book.Version, was+1)
			return back
		}); !errors.Is(err, back) {
			t.Error(err)
		}
		stand.Equal(t, "after the rollback", mine.Book.Version, was)
	})
}
