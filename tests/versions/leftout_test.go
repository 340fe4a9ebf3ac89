package versions_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	badge struct {
		ID      int64
		Note    string
		Tags    []badgeTag
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	badgeTag struct {
		ID, BadgeID int64
		Name        string
		Version     int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

// An INSERT that leaves out the keys of structs that have one is for other rows: for new ones, or those that have the next keys.
func TestUpsert_withoutTheKey(t *testing.T) {
	t.Parallel()
	for name, save := range map[string]func(db *gorm.DB, all []badge) error{
		"Select":          func(db *gorm.DB, all []badge) error { return db.Select("note").Save(&all).Error },
		"Select, pointer": func(db *gorm.DB, all []badge) error { return db.Select("note").Save(&[]*badge{&all[0]}).Error },
		"Omit":            func(db *gorm.DB, all []badge) error { return db.Omit("id").Save(&all).Error },
		"IgnoreVersion": func(db *gorm.DB, all []badge) error {
			return db.Clauses(gormlock.IgnoreVersion()).Select("note").Save(&all).Error
		},
		"unread": func(db *gorm.DB, _ []badge) error {
			return db.Clauses(gormlock.IgnoreVersion()).Select("note").Save(&[]badge{{ID: 2, Note: "mine"}}).Error
		},
		"upsert": func(db *gorm.DB, all []badge) error {
			return db.Select("note").Clauses(clause.OnConflict{UpdateAll: true}).Create(&all).Error
		},
		"children": func(db *gorm.DB, all []badge) error {
			return db.Session(&gorm.Session{FullSaveAssociations: true}).Select("Note", "Tags", "Tags.Name", "Tags.BadgeID").Save(&all[0]).Error
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stand.OnBoth(t, []any{&badge{}, &badgeTag{}}, func(t *testing.T, db *gorm.DB) {
				for i := range int64(3) { // which the sequence of PostgreSQL does not know
					stand.Must(t, db.Create(&badge{ID: i + 1, Note: "old", Tags: []badgeTag{{ID: i + 1, Name: "old"}}}).Error)
				}
				var all []badge
				stand.Must(t, db.Preload("Tags").Order("id").Find(&all).Error)
				all[0].Note, all[0].Tags[0].Name = "mine", "mine"
				if err := save(db, all[:1]); err == nil || !strings.Contains(err.Error(), "leaves its key id out") {
					t.Errorf("%v", err)
				}
				var now []badge
				stand.Must(t, db.Preload("Tags").Order("id").Find(&now).Error)
				stand.Equal(t, "rows", len(now), 3)
				for _, l := range now {
					stand.Equal(t, "note", l.Note, "old")
					stand.Equal(t, "tag", l.Tags[0].Name, "old")
				}
				stand.Must(t, db.Select("id", "note").Save(&all).Error)
				stand.Equal(t, "note", stand.Row[badge](t, db, 1).Note, "mine")
			})
		})
	}
}

// A key that no INSERT may name, as one GENERATED ALWAYS, is left out by its tag, and the error says so.
func TestUpsert_withoutTheKeyByItsTag(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stamp{}})
	list := []*stamp{{Name: "a"}, {Name: "b"}}
	stand.MustDo(t, db.Create(list))
	for name, save := range map[string]func() error{
		"Save of a slice": func() error { return db.Save(list).Error },
		"with Select":     func() error { return db.Select("id", "name").Save(list).Error },
		"upsert": func() error {
			return db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}}, UpdateAll: true}).Create(list[0]).Error
		},
	} {
		if err := save(); err == nil || !strings.Contains(err.Error(), "the tag of its key id leaves it out") || strings.Contains(err.Error(), "Select") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, s := range list {
		s.Name += "!"
		stand.MustDo(t, db.Save(s))
		stand.Equal(t, "name", stand.Row[stamp](t, db, s.ID).Name, s.Name)
	}
}

// stamp is a model whose key the database alone makes.
type stamp struct {
	ID      int64  `gorm:"->;type:bigint generated always as identity;primaryKey"`
	Name    string `gorm:"uniqueIndex"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}
