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
