package merges_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// folder does in its hooks what it is given.
type folder struct {
	ID      int64
	Title   string
	Number  string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`

	Before, After func(tx *gorm.DB, f *folder) error `gorm:"-"`
}

func (f *folder) BeforeSave(tx *gorm.DB) error {
	if f.Before == nil {
		return nil
	}
	return f.Before(tx, f)
}

func (f *folder) AfterSave(tx *gorm.DB) error {
	if f.After == nil {
		return nil
	}
	return f.After(tx, f)
}

// In a hook SaveMerged has nothing of the statement whose hook it is.
func TestSaveMerged_inAHook(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&folder{}, &stand.Account{}})
	for outer, write := range map[string]func(f *folder) error{
		"Save":   func(f *folder) error { return db.Save(f).Error },
		"Select": func(f *folder) error { return db.Select("title").Updates(f).Error },
		"Omit":   func(f *folder) error { return db.Omit("number").Save(f).Error },
		"Table":  func(f *folder) error { return db.Table("folders").Save(f).Error },
		"Where":  func(f *folder) error { return db.Where("title = 'one'").Model(f).Update("title", "two").Error },
		"Create": func(f *folder) error { return db.Create(&folder{Before: f.Before, After: f.After}).Error },
		"ExpectVersion": func(f *folder) error {
			return db.Clauses(gormlock.ExpectVersion(1)).Model(f).Update("title", "two").Error
		},
		"IgnoreVersion": func(f *folder) error {
			return db.Clauses(gormlock.IgnoreVersion()).Model(f).Update("title", "two").Error
		},
	} {
		for _, after := range []bool{false, true} {
			base := stand.Made(t, db, stand.Account{Balance: 1})
			f := stand.Made(t, db, folder{Title: "one"})
			hook := func(tx *gorm.DB, _ *folder) error {
				mine := base
				mine.Balance = 2
				return gormlock.SaveMerged(tx, &mine, &base)
			}
			if f.Before = hook; after {
				f.Before, f.After = nil, hook
			}
			if err := write(&f); err != nil {
				t.Errorf("%s, after %t: %v", outer, after, err)
			}
			if row := stand.Row[stand.Account](t, db, base.ID); row.Balance != 2 {
				t.Errorf("%s, after %t: stored %+v", outer, after, row)
			}
		}
	}
}

// A statement that a hook of the merged struct makes of its own statement's session is no part of the merge.
func TestSaveMerged_whoseHookWrites(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&folder{}, &stand.Account{}})
	account := stand.Made(t, db, stand.Account{Balance: 1})
	for does, hook := range map[string]func(tx *gorm.DB, f *folder) error{
		"by the hook's session": func(tx *gorm.DB, f *folder) error {
			return tx.Session(&gorm.Session{SkipHooks: true}).Model(f).Update("number", "N").Error
		},
		"by a new session": func(tx *gorm.DB, f *folder) error {
			return tx.Session(&gorm.Session{SkipHooks: true, NewDB: true}).Model(f).Update("number", "N").Error
		},
	} {
		base := stand.Made(t, db, folder{Title: "old"})
		mine := base
		mine.Title, mine.Before = "new", hook
		stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
		row := stand.Row[folder](t, db, base.ID)
		if row.Title != "new" || row.Number != "N" || mine.Title != "new" || mine.Number != "N" || mine.Version != row.Version {
			t.Errorf("%s: stored %+v, the struct is %+v", does, row, mine)
		}
	}
	base := stand.Made(t, db, folder{Title: "old"})
	mine := base
	mine.Title, mine.Before = "new", func(tx *gorm.DB, _ *folder) error {
		return tx.Session(&gorm.Session{SkipHooks: true}).Model(&stand.Account{}).Where("balance = 1").Update("balance", 2).Error
	}
	if err := gormlock.SaveMerged(db, &mine, &base); err == nil && stand.Row[stand.Account](t, db, account.ID).Balance != 2 {
		t.Error("the hook wrote nothing, without an error")
	}
}

// counting has a field that some queries work out.
type counting struct {
	ID      int64
	Note    string
	Total   int64 `gorm:"->;-:migration"`
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func TestSaveMerged_keepsWhatAQueryWorkedOut(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&counting{}})
	stand.Made(t, db, counting{Note: "a"})
	var base counting
	stand.MustDo(t, db.Select("*, 42 AS total").First(&base))
	mine := base
	stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
	stand.Equal(t, "total when nothing is written", mine.Total, 42)
	mine.Note = "b"
	stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
	stand.Equal(t, "total", mine.Total, 42)
	stand.Equal(t, "note", stand.Row[counting](t, db, 1).Note, "b")
}
