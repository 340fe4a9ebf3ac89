package rollbacks_test

import (
	"errors"
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

// GORM copies what Append has stored back to the caller. After a rollback both have the key, so another attempt stores one row.
func TestRollback_ofAnAppendThatIsTriedAgain(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&appendOwner{}, &appendKid{}, &appendTag{}})
	for name, way := range map[string]struct{ preloads, creates bool }{
		"owner alone": {}, "with its children": {preloads: true}, "created before": {creates: true}, "with its children, created before": {true, true},
	} {
		stand.MustDo(t, db.Exec("TRUNCATE append_owners, append_kids, append_tags, append_owner_tags"))
		stand.MustDo(t, db.Create(&appendOwner{Kids: []appendKid{{Text: "old"}}, Tags: []appendTag{{Text: "old"}}}))
		query := db.Session(&gorm.Session{})
		if way.preloads {
			query = query.Preload("Kids").Preload("Tags")
		}
		var o appendOwner
		stand.MustDo(t, query.First(&o))
		kid, tag := &appendKid{Text: "new"}, &appendTag{Text: "new"}
		for _, end := range []error{errors.New("back"), errors.New("back"), nil} {
			err := db.Transaction(func(tx *gorm.DB) error {
				if err := tx.Model(&o).Association("Kids").Append(kid); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if way.creates {
					stand.MustDo(t, tx.Create(tag))
				}
				if err := tx.Model(&o).Association("Tags").Append(tag); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				return end
			})
			if err != end { //nolint:errorlint // it is the same
				t.Errorf("%s: %v", name, err)
			}
		}
		var kids, tags int64
		stand.MustDo(t, db.Model(&appendKid{}).Where("text = 'new'").Count(&kids))
		stand.MustDo(t, db.Model(&appendTag{}).Where("text = 'new'").Count(&tags))
		if linked := db.Model(&o).Association("Tags").Count(); kids != 1 || tags != 1 || linked != 2 {
			t.Errorf("%s: %d new kids, %d new tags, %d tags are linked", name, kids, tags, linked)
		}
	}
}
