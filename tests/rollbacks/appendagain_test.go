package rollbacks_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

type appendOwner struct {
	ID      int64
	Kids    []appendKid `gorm:"foreignKey:OwnerID"`
	Tags    []appendTag `gorm:"many2many:append_owner_tags"`
	Version int64       `gorm:"not null;default:1" gormlock:"version"`
}

type appendKid struct {
	ID, OwnerID int64
	Text        string
	Version     int64 `gorm:"not null;default:1" gormlock:"version"`
}

type appendTag struct {
	ID      int64
	Text    string `gorm:"unique"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

type railsAppendOwner struct {
	ID      int64
	Kids    []railsAppendKid `gorm:"foreignKey:OwnerID"`
	Tags    []railsAppendTag `gorm:"many2many:rails_append_owner_tags"`
	Version int64            `gorm:"not null;default:0" gormlock:"version,rails"`
}

type railsAppendKid struct {
	ID, OwnerID int64
	Text        string
	Version     int64 `gorm:"not null;default:0" gormlock:"version,rails"`
}

type railsAppendTag struct {
	ID      int64
	Text    string `gorm:"unique"`
	Version int64  `gorm:"not null;default:0" gormlock:"version,rails"`
}

// GORM copies what Append has stored back to the caller. After a rollback both have the key, so another attempt stores one row.
func TestRollback_ofAnAppendThatIsTriedAgain(t *testing.T) {
	t.Parallel()
	appendAgain(t, "append", func() appendOwner {
		return appendOwner{Kids: []appendKid{{Text: "old"}}, Tags: []appendTag{{Text: "old"}}}
	}, appendKid{Text: "new"}, appendTag{Text: "new"})
	appendAgain(t, "rails_append", func() railsAppendOwner {
		return railsAppendOwner{Kids: []railsAppendKid{{Text: "old"}}, Tags: []railsAppendTag{{Text: "old"}}}
	}, railsAppendKid{Text: "new"}, railsAppendTag{Text: "new"})
}

func appendAgain[Owner, Kid, Tag any](t *testing.T, tables string, owner func() Owner, newKid Kid, newTag Tag) {
	t.Helper()
	db := stand.Versioned(t, []any{new(Owner), &newKid, &newTag})
	for name, way := range map[string]struct{ preloads, creates bool }{
		"owner alone": {}, "with its children": {preloads: true}, "created before": {creates: true}, "with its children, created before": {true, true},
	} {
		stand.MustDo(t, db.Exec(strings.ReplaceAll("TRUNCATE %_owners, %_kids, %_tags, %_owner_tags", "%", tables)))
		made := owner()
		stand.MustDo(t, db.Create(&made))
		query := db.Session(&gorm.Session{})
		if way.preloads {
			query = query.Preload("Kids").Preload("Tags")
		}
		var o Owner
		stand.MustDo(t, query.First(&o))
		kid, tag := newKid, newTag
		for _, end := range []error{errors.New("back"), errors.New("back"), nil} {
			err := db.Transaction(func(tx *gorm.DB) error {
				if err := tx.Model(&o).Association("Kids").Append(&kid); err != nil {
					t.Errorf("%T, %s: %v", o, name, err)
				}
				if way.creates {
					stand.MustDo(t, tx.Create(&tag))
				}
				if err := tx.Model(&o).Association("Tags").Append(&tag); err != nil {
					t.Errorf("%T, %s: %v", o, name, err)
				}
				return end
			})
			if err != end { //nolint:errorlint // it is the same
				t.Errorf("%T, %s: %v", o, name, err)
			}
		}
		var kids, tags int64
		stand.MustDo(t, db.Model(&newKid).Where("text = 'new'").Count(&kids))
		stand.MustDo(t, db.Model(&newTag).Where("text = 'new'").Count(&tags))
		if linked := db.Model(&o).Association("Tags").Count(); kids != 1 || tags != 1 || linked != 2 {
			t.Errorf("%T, %s: %d new kids, %d new tags, %d tags are linked", o, name, kids, tags, linked)
		}
	}
}
