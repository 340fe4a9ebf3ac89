package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	volume struct {
		ID      int64
		Code    string `gorm:"<-:create"`
		Name    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	titled   struct{ Name string }
	Titled   struct{ Name string }
	codeForm struct{ Code string }
	deepForm struct{ titled }
	farForm  struct{ *titled }
	bothForm struct {
		titled
		Code string
	}
	wellForm struct {
		Titled
		Code string `gorm:"->"`
	}
	sameForm struct{ Code, Name string }
	calmForm struct {
		titled `gorm:"-"`
		Name   string
	}
)

// GORM leaves out what it cannot read from a form, and what a tag keeps out of updates. If it is asked for, that is an error.
func TestForm_ofWhichGORMLeavesOutAPart(t *testing.T) {
	t.Parallel()
	const bars, hides, nothing = "keeps it out of updates", "not exported", "leave nothing to write"
	onlyMap := func(name string, value any) **map[string]any { m := &map[string]any{name: value}; return &m }
	for name, c := range map[string]struct {
		want  string // in the error; empty: it is written
		write func(db *gorm.DB) *gorm.DB
	}{
		"a column of creates":            {bars, func(db *gorm.DB) *gorm.DB { return db.Updates(codeForm{"x"}) }},
		"a column of creates, selected":  {bars, func(db *gorm.DB) *gorm.DB { return db.Select("Code").Updates(codeForm{"x"}) }},
		"a column of creates, in a map":  {bars, func(db *gorm.DB) *gorm.DB { return db.Updates(map[string]any{"code": "x"}) }},
		"a column of creates, in itself": {bars, func(db *gorm.DB) *gorm.DB { return db.Updates(volume{Code: "x"}) }},
		"beside another":                 {bars, func(db *gorm.DB) *gorm.DB { return db.Updates(sameForm{"x", "x"}) }},
		"in a hidden type":               {hides, func(db *gorm.DB) *gorm.DB { return db.Updates(deepForm{titled{"x"}}) }},
		"in a hidden type, by pointer":   {hides, func(db *gorm.DB) *gorm.DB { return db.Updates(&farForm{&titled{"x"}}) }},
		"in a hidden type, selected":     {hides, func(db *gorm.DB) *gorm.DB { return db.Select("Name").Updates(deepForm{titled{"x"}}) }},
		"in a hidden type and not":       {hides, func(db *gorm.DB) *gorm.DB { return db.Updates(bothForm{titled{"x"}, "x"}) }},
		"map behind pointers":            {bars, func(db *gorm.DB) *gorm.DB { return db.Updates(onlyMap("code", "x")) }},
		"map behind pointers, selected":  {nothing, func(db *gorm.DB) *gorm.DB { return db.Select("Name").Updates(onlyMap("code", "x")) }},
		"map behind pointers, omitted":   {nothing, func(db *gorm.DB) *gorm.DB { return db.Omit("Name").Updates(onlyMap("name", "x")) }},
		"map with a version": {"is stale", func(db *gorm.DB) *gorm.DB {
			m := &map[string]any{"name": "x", "version": 7}
			return db.Updates(&m)
		}},

		"one that fits":             {"", func(db *gorm.DB) *gorm.DB { return db.Updates(wellForm{Titled{"x"}, "x"}) }},
		"what the row has":          {"", func(db *gorm.DB) *gorm.DB { return db.Updates(sameForm{"a", "x"}) }},
		"omitted":                   {"", func(db *gorm.DB) *gorm.DB { return db.Omit("Code").Updates(sameForm{"x", "x"}) }},
		"selected":                  {"", func(db *gorm.DB) *gorm.DB { return db.Select("Name").Updates(sameForm{"x", "x"}) }},
		"itself":                    {"", func(db *gorm.DB) *gorm.DB { return db.Updates(volume{Code: "x", Name: "x"}) }},
		"map behind pointers, fits": {"", func(db *gorm.DB) *gorm.DB { return db.Select("Name").Updates(onlyMap("name", "x")) }},
		"an ignored hidden type": {"", func(db *gorm.DB) *gorm.DB {
			return db.Updates(calmForm{titled: titled{"y"}, Name: "x"})
		}},
		"form behind pointers": {"", func(db *gorm.DB) *gorm.DB { f := &titled{"x"}; return db.Updates(&f) }},
		"an empty hidden type beside": {"", func(db *gorm.DB) *gorm.DB {
			return db.Updates(&struct {
				titled
				Name string
			}{Name: "x"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&volume{}})
			stand.Must(t, db.Create(&volume{Code: "a", Name: "a"}).Error)
			var v volume
			stand.Must(t, db.First(&v).Error)
			err := c.write(db.Model(&v)).Error
			now := stand.Row[volume](t, db, 1)
			stand.Equal(t, "the struct", v, now)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v", err)
				}
				stand.Equal(t, "row", now, volume{ID: 1, Code: "a", Name: "a", Version: 1})
				return
			}
			stand.Must(t, err)
			stand.Equal(t, "row", now, volume{ID: 1, Code: "a", Name: "x", Version: 2})
		})
	}
}
