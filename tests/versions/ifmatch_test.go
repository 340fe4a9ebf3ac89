package versions_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type taggedParent struct {
	ID      int64
	Name    string
	Lines   []taggedLine `gorm:"foreignKey:ParentID"`
	Version int64        `gormlock:"version"`
}

type taggedLine struct {
	ID, ParentID int64
	Text         string
	Version      int64 `gormlock:"version"`
}

// What came in If-Match is compared at each door, or the door says that it compares nothing. Nothing is written over.
func TestIfMatch_doors(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&taggedParent{}, &taggedLine{}, &stand.Account{}}, ifMatchDoors)
}

func ifMatchDoors(t *testing.T, db *gorm.DB) {
	p := stand.Made(t, db, taggedParent{Name: "a", Lines: []taggedLine{{Text: "one"}}})
	read := func() (row taggedParent) {
		stand.Must(t, db.Preload("Lines").First(&row, p.ID).Error)
		return row
	}
	before := read()
	for kind, expected := range map[string]asking{"a list": stand.IfMatch(`"7"`, `"8"`), "one": stand.IfMatch(`"8"`), "none of its": stand.IfMatch(`"x"`), "weak": stand.IfMatch(`W/"1"`)} {
		tx := db.Clauses(expected).Session(&gorm.Session{})
		full := tx.Session(&gorm.Session{FullSaveAssociations: true})
		for name, write := range map[string]func(row *taggedParent) error{
			"Save":         func(row *taggedParent) error { return tx.Save(row).Error },
			"Save, all":    func(row *taggedParent) error { return full.Save(row).Error },
			"Updates":      func(row *taggedParent) error { return tx.Updates(row).Error },
			"Select":       func(row *taggedParent) error { return tx.Select("name").Updates(row).Error },
			"Omit":         func(row *taggedParent) error { return tx.Omit("Lines").Updates(row).Error },
			"UpdateColumn": func(row *taggedParent) error { return tx.Model(row).UpdateColumn("name", "lost").Error },
			"Update, an expression": func(row *taggedParent) error {
				return tx.Model(row).Update("name", gorm.Expr("upper(name)")).Error
			},
			"a slice": func(row *taggedParent) error { return tx.Model(&[]taggedParent{*row}).Update("name", "lost").Error },
			"Delete":  func(row *taggedParent) error { return tx.Delete(row).Error },
			"Touch":   func(row *taggedParent) error { return gormlock.Touch(tx, row) },
			"Preserve": func(row *taggedParent) error {
				return tx.Clauses(gormlock.PreserveVersion()).Model(row).Update("name", "lost").Error
			},
			"IfUnchanged": func(row *taggedParent) error {
				return tx.Clauses(gormlock.IfUnchanged(&before, "name")).Model(row).Update("name", "lost").Error
			},
			"a form that has a version": func(row *taggedParent) error {
				return tx.Model(row).Updates(map[string]any{"name": "lost", "version": 1}).Error
			},
			"children deleted with it": func(row *taggedParent) error { return tx.Select("Lines").Delete(row).Error },
			"without a transaction": func(row *taggedParent) error {
				return tx.Session(&gorm.Session{SkipDefaultTransaction: true}).Save(row).Error
			},
		} {
			row := read()
			row.Name, row.Lines[0].Text = "lost", "lost"
			if err := write(&row); !errors.Is(err, gormlock.ErrStale) {
				t.Errorf("%s, %s: %v", kind, name, err)
			}
			if now := read(); now.Name != "a" || now.Version != 1 || len(now.Lines) != 1 || now.Lines[0] != before.Lines[0] {
				t.Fatalf("%s, %s: %+v", kind, name, now)
			}
		}
		stand.MustStale(t, tx.Save(&taggedParent{ID: 77, Name: "new"}).Error)
		for name, err := range map[string]error{
			"Create":        tx.Create(&taggedParent{Name: "new"}).Error,
			"Save, new":     tx.Save(&taggedParent{Name: "new"}).Error,
			"Save, a slice": tx.Save(&[]taggedParent{before}).Error,
			"an upsert":     tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&taggedParent{ID: p.ID, Name: "lost"}).Error,
			"First":         tx.First(&taggedParent{}, p.ID).Error,
			"FirstOrCreate": tx.Where("id = 99").FirstOrCreate(&taggedParent{}).Error,
			"IgnoreVersion": tx.Clauses(gormlock.IgnoreVersion()).Model(&taggedParent{ID: p.ID}).Update("name", "lost").Error,
			"a table":       tx.Table("tagged_parents").Where("id = ?", p.ID).Update("name", "lost").Error,
			"Append":        tx.Model(&taggedParent{ID: p.ID}).Association("Lines").Append(&taggedLine{Text: "lost"}),
		} {
			if err == nil {
				t.Errorf("%s, %s: no error", kind, name)
			}
		}
		if now := read(); now.Name != "a" || len(now.Lines) != 1 {
			t.Fatalf("%s: %+v", kind, now)
		}
	}
	var n int64
	stand.Must(t, db.Model(&taggedParent{}).Count(&n).Error)
	stand.Equal(t, "rows", n, 1)
	if err := db.Clauses(stand.IfMatch("*")).Model(&taggedParent{ID: p.ID}).Updates(map[string]any{}).Error; err == nil || !strings.Contains(err.Error(), "nothing is set") {
		t.Errorf("nothing is set: %v", err)
	}
	// A list that has the version lets the row be written with its children, and the struct is the row then.
	row := read()
	row.Name, row.Lines[0].Text, row.Version = "b", "two", 41
	stand.Must(t, db.Session(&gorm.Session{FullSaveAssociations: true}).Clauses(stand.IfMatch(`"1", "7"`)).Save(&row).Error)
	if now := read(); now.Name != "b" || now.Lines[0].Text != "two" || now.Version != row.Version {
		t.Errorf("%+v, the struct %+v", now, row)
	}
	stand.Must(t, db.Save(&row).Error)
}

// A rollback takes back what a list let through, in memory too.
func TestIfMatch_rollback(t *testing.T) {
	t.Parallel()
	stand.OnEachAndMySQL(t, []any{&stand.Account{}}, func(t *testing.T, db *gorm.DB) {
		a := stand.Made(t, db, stand.Account{Balance: 1})
		before, undo := a, errors.New("undo")
		for _, lines := range []string{`"1"`, `"1", "2"`, `*`} {
			if err := db.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, tx.Clauses(stand.IfMatch(lines)).Model(&a).Update("balance", 2).Error)
				stand.Equal(t, "in it", a, stand.Row[stand.Account](t, tx, a.ID))
				return undo
			}); !errors.Is(err, undo) {
				t.Error(err)
			}
			stand.Equal(t, lines, a, before)
		}
	})
}

// VerifyVersion compares the tags with the row under its lock.
func TestIfMatch_verify(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, stand.Account{Balance: 1})
	stand.Must(t, db.Model(&a).Update("balance", 2).Error)
	verify := func(id int64, lines ...string) error {
		return db.Transaction(func(tx *gorm.DB) error {
			return gormlock.VerifyVersion(tx.Clauses(stand.IfMatch(lines...)), &stand.Account{ID: id})
		})
	}
	for _, lines := range []string{`"2"`, `"1", "2"`, `*`} {
		stand.Must(t, verify(a.ID, lines))
	}
	for _, lines := range []string{`"1"`, `"1", "3"`, `"x"`, `W/"2"`} {
		stale := stand.MustBeStale(t, verify(a.ID, lines))
		stand.Equal[any](t, lines, stale.Actual, int64(2))
	}
	for _, lines := range []string{`"2"`, `"1", "2"`, `*`} {
		stand.Equal(t, lines, stand.MustBeStale(t, verify(99, lines)).Deleted, true)
	}
}

// The error names what the request named, and where the row is.
func TestIfMatch_says(t *testing.T) {
	t.Parallel()
	db, a := stand.Stored(t, stand.Account{Balance: 1})
	for lines, want := range map[string]string{
		`"7"`:                                    `version 7 is stale, the row is at 1: the row has not been at the expected version yet: is it that of another row?`,
		`"6", "7"`:                               `version "6", "7" is stale, the row is at 1`,
		`W/"1"`:                                  `version W/"1" is stale, the row is at 1`,
		strings.Repeat(`"123456","123457",`, 99): `version ` + strings.Repeat(`"123456", "123457", `, 5) + `… is stale, the row is at 1`,
	} {
		err := stand.MustBeStale(t, db.Clauses(stand.IfMatch(lines)).Model(&stand.Account{ID: a.ID}).Update("balance", 9).Error)
		stand.Equal(t, lines, err.Error(), "gormlock: accounts id=1: "+want)
	}
	err := stand.MustBeStale(t, db.Clauses(stand.IfMatch("*")).Model(&stand.Account{ID: 99}).Update("balance", 9).Error)
	stand.Equal(t, "any", err.Error(), "gormlock: accounts id=99: version * is stale, the row is gone")
}
