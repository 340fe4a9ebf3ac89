package roots_test

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// diary has a version of time, and entries are its parts.
type diary struct {
	ID      int64
	Title   string
	Version time.Time `gorm:"not null" gormlock:"version"`
}

type entry struct {
	ID      int64
	Text    string
	DiaryID int64
	Diary   *diary `gormlock:"root"`
}

// A struct of a root whose version is a time follows the root, as one with a number does, whichever way it was moved.
func TestRoot_ofTime(t *testing.T) {
	t.Parallel()
	stand.OnEach(t, []any{&diary{}, &entry{}}, func(t *testing.T, db *gorm.DB) {
		d := stand.Made(t, db, diary{})
		stand.Must(t, db.First(&d).Error)
		last := d.Version
		follows := func(what string) {
			t.Helper()
			stored := stand.Row[diary](t, db, d.ID).Version
			if !d.Version.Equal(stored) || !stored.After(last) {
				t.Errorf("%s: the struct is at %v, the row at %v, it was at %v", what, d.Version, stored, last)
			}
			last = stored
		}
		e := stand.Made(t, db, entry{DiaryID: d.ID, Diary: &d})
		follows("create")
		stand.Must(t, db.Model(&e).Update("text", "x").Error)
		follows("update")
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, tx.Create(&entry{DiaryID: d.ID}).Error)
			return tx.Create(&entry{DiaryID: d.ID, Diary: &d}).Error
		}))
		follows("held, after a move by the key")
		base, mine := e, e
		mine.Text = "mine"
		stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
		follows("merged")
		stand.Must(t, db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, tx.Create(&entry{DiaryID: d.ID}).Error)
			return tx.Model(&d).Update("title", "its own write").Error
		}))
		follows("its own write, after a move by the key")
		stand.Must(t, db.Model(&entry{}).Where("diary_id = ?", d.ID).Update("text", "all").Error)
		stand.MustStale(t, db.Create(&entry{DiaryID: d.ID, Diary: &d}).Error)
		stand.MustStale(t, db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, tx.Create(&entry{DiaryID: d.ID}).Error)
			return tx.Create(&entry{DiaryID: d.ID, Diary: &d}).Error
		}))
		stand.Must(t, db.First(&d).Error)
		was := d.Version
		back := errors.New("back")
		if err := db.Transaction(func(tx *gorm.DB) error {
			stand.Must(t, tx.Create(&entry{DiaryID: d.ID}).Error)
			stand.Must(t, tx.Create(&entry{DiaryID: d.ID, Diary: &d}).Error)
			return back
		}); !errors.Is(err, back) || !d.Version.Equal(was) {
			t.Errorf("%v, and the version is %v, was %v", err, d.Version, was)
		}
		stand.Must(t, db.Delete(&entry{ID: e.ID, DiaryID: d.ID, Diary: &d}).Error)
		stand.MustStale(t, db.Create(&entry{DiaryID: d.ID + 4711}).Error)
	})
	db := stand.Versioned(t, []any{&diary{}, &entry{}})
	d := stand.Made(t, db, diary{})
	err := gormlock.Transaction(db, func(tx *gorm.DB) error {
		stand.Must(t, tx.First(&diary{}, d.ID).Error)
		stand.Must(t, db.Model(&diary{}).Where("id = ?", d.ID).Update("title", "a rival").Error)
		return tx.Create(&entry{DiaryID: d.ID}).Error
	}, gormlock.Isolation(sql.LevelRepeatableRead))
	stand.Equal(t, "table", stand.MustBeStale(t, err).Table, "diaries")
}
