package merges_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

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

// plainFolder is one without a version.
type plainFolder struct {
	ID     int64
	Title  string
	Number string
	Before func(stmt *gorm.Statement) `gorm:"-"`
}

func (f *plainFolder) BeforeUpdate(tx *gorm.DB) error {
	f.Before(tx.Statement)
	return nil
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

// A hook may change the statement of the merge. It is an error where that drops what mine changed, or the row.
func TestSaveMerged_whoseHookNarrows(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&folder{}, &plainFolder{}}, func(t *testing.T, db *gorm.DB) {
		for does, narrow := range map[string]func(stmt *gorm.Statement){
			"Omit":              func(stmt *gorm.Statement) { stmt.Omits = append(stmt.Omits, "title") },
			"Omit, by field":    func(stmt *gorm.Statement) { stmt.Omits = append(stmt.Omits, "Title") },
			"Omit of all":       func(stmt *gorm.Statement) { stmt.Omits = append(stmt.Omits, "title", "number") },
			"Select":            func(stmt *gorm.Statement) { stmt.Selects = []string{"number"} },
			"Select of nothing": func(stmt *gorm.Statement) { stmt.Selects = []string{"nothing"} },
			"Dest":              func(stmt *gorm.Statement) { stmt.Dest = map[string]any{"number": "7"} },
			"a condition": func(stmt *gorm.Statement) {
				stmt.AddClause(clause.Where{Exprs: []clause.Expression{clause.Eq{Column: "number", Value: "7"}}})
			},
		} {
			hook := func(tx *gorm.DB, _ *folder) error { narrow(tx.Statement); return nil }
			base := stand.Made(t, db, folder{Title: "one"})
			mine := base
			mine.Title, mine.Before = "two", hook
			if err := gormlock.SaveMerged(db, &mine, &base); err == nil || !strings.HasPrefix(err.Error(), "gormlock: ") || mine.Title != "two" || mine.Version != 1 {
				t.Errorf("%s: %v, mine is %q at %d", does, err, mine.Title, mine.Version)
			}
			was := stand.Made(t, db, plainFolder{Title: "one"})
			ours := was
			ours.Title, ours.Before = "two", narrow
			if err := gormlock.SaveMerged(db, &ours, &was); err == nil || !strings.HasPrefix(err.Error(), "gormlock: ") || ours.Title != "two" {
				t.Errorf("%s, no version: %v, mine is %q", does, err, ours.Title)
			}
			stand.Equal(t, does, stand.Row[folder](t, db, base.ID).Title+stand.Row[plainFolder](t, db, was.ID).Title, "oneone")
		}
		base := stand.Made(t, db, folder{Title: "one"})
		mine := base
		mine.Title, mine.Before = "two", func(tx *gorm.DB, _ *folder) error {
			tx.Statement.Omits = append(tx.Statement.Omits, "number")
			tx.Statement.SetColumn("Title", "three")
			return nil
		}
		stand.Must(t, gormlock.SaveMerged(db, &mine, &base))
		stand.Equal(t, "title", stand.Row[folder](t, db, base.ID).Title, "three")
	})
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
