package rollbacks_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type failedOwner struct {
	ID        int64
	UpdatedAt time.Time    // which Append writes
	Kids      []failedKid  `gorm:"foreignKey:OwnerID"`
	Others    []*failedKid `gorm:"foreignKey:OtherID"`
	Tags      []failedTag  `gorm:"many2many:failed_owner_tags"`
	Version   int64        `gorm:"not null;default:1" gormlock:"version"`
}

type failedKid struct {
	ID      int64
	OwnerID *int64
	OtherID *int64
	Text    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type failedTag struct {
	ID      int64
	Text    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// GORM leaves in a struct what a stale Append has put there. To append it again does not store it twice: what the struct holds by pointer is
// stored once, and the rest is an error that says what to do.
func TestAppend_thatIsTriedAgainAfterAConflict(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&failedOwner{}, &failedKid{}, &failedTag{}})
	read := map[string]func(tx *gorm.DB, o *failedOwner) error{
		"first": func(tx *gorm.DB, o *failedOwner) error { return tx.First(o, o.ID).Error },
		"preload": func(tx *gorm.DB, o *failedOwner) error {
			return tx.Preload("Kids").Preload("Others").Preload("Tags").First(o, o.ID).Error
		},
		"fresh": func(tx *gorm.DB, o *failedOwner) error {
			id := o.ID
			*o = failedOwner{}
			return tx.First(o, id).Error
		},
	}
	appends := map[string]func(tx *gorm.DB, o *failedOwner) error{
		"Kids": func(tx *gorm.DB, o *failedOwner) error {
			return tx.Model(o).Association("Kids").Append(&failedKid{Text: "new"})
		},
		"Kids, full": func(tx *gorm.DB, o *failedOwner) error {
			return tx.Session(&gorm.Session{FullSaveAssociations: true}).Model(o).Association("Kids").Append(&failedKid{Text: "new"})
		},
		"Tags": func(tx *gorm.DB, o *failedOwner) error {
			return tx.Model(o).Association("Tags").Append([]failedTag{{Text: "new"}})
		},
	}
	other := &failedKid{Text: "new"}
	appends["Others"] = func(tx *gorm.DB, o *failedOwner) error { return tx.Model(o).Association("Others").Append(other) }
	for again, read := range read {
		for name, add := range appends {
			for _, within := range []bool{false, true} {
				o := failedOwner{}
				stand.MustDo(t, db.Create(&o))
				*other = failedKid{Text: "new"}
				stand.MustDo(t, db.Exec("UPDATE failed_owners SET version = version + 1 WHERE id = ?", o.ID))
				try := func() error { return add(db, &o) }
				if within {
					try = func() error { return db.Transaction(func(tx *gorm.DB) error { return add(tx, &o) }) }
				}
				if err := try(); !errors.Is(err, gormlock.ErrStale) {
					t.Fatalf("%s, %s, in a transaction %v: %v", again, name, within, err)
				}
				stand.Must(t, read(db, &o))
				err := try()
				var kids, tags int64
				stand.MustDo(t, db.Model(&failedKid{}).Where("owner_id = ? OR other_id = ?", o.ID, o.ID).Count(&kids))
				tags = db.Model(&failedOwner{ID: o.ID}).Association("Tags").Count()
				switch refused := again == "first" && name != "Others"; {
				case refused && (err == nil || errors.Is(err, gormlock.ErrStale) || kids+tags != 0):
					t.Errorf("%s, %s, in a transaction %v: %d kids and %d tags: %v", again, name, within, kids, tags, err)
				case !refused && (err != nil || kids+tags != 1):
					t.Errorf("%s, %s, in a transaction %v: %d kids and %d tags: %v", again, name, within, kids, tags, err)
				}
			}
		}
	}
}
