package rollbacks_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// family holds its children by pointers.
type family struct {
	ID      int64
	Name    string
	Kids    []*kid
	Head    *head
	Clubs   []*club `gorm:"many2many:family_clubs"`
	Version int64   `gorm:"not null;default:1" gormlock:"version"`
}

type kid struct {
	ID       int64
	Name     string
	FamilyID *int64
	Version  int64 `gorm:"not null;default:1" gormlock:"version"`
}

type head struct {
	ID       int64
	Name     string
	FamilyID *int64
	Version  int64 `gorm:"not null;default:1" gormlock:"version"`
}

type club struct {
	ID      int64
	Name    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// What Association(...).Append is given by pointer, and the field holds by pointer, keeps its version in the caller's transaction, and a
// rollback takes it back. A rival's write is seen then.
func TestAppend_ofPointers(t *testing.T) {
	t.Parallel()
	back := errors.New("back")
	stand.OnEach(t, []any{&family{}, &kid{}, &head{}, &club{}}, func(t *testing.T, db *gorm.DB) {
		for _, ends := range []error{nil, back} {
			f, old, older := family{}, kid{Name: "old"}, head{Name: "older"}
			stand.Must(t, db.Create(&f).Error)
			stand.Must(t, db.Create(&old).Error)
			stand.Must(t, db.Create(&older).Error)
			was := [2]int64{old.Version, older.Version}
			born, joined := kid{Name: "new"}, club{Name: "new"}
			err := db.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, tx.Model(&f).Association("Kids").Append(&old, &born))
				stand.Must(t, tx.Model(&f).Association("Head").Replace(&older))
				stand.Must(t, tx.Model(&f).Association("Clubs").Append(&joined))
				stand.Equal(t, "in the transaction, kids", [2]int64{old.Version, born.Version}, [2]int64{stand.Row[kid](t, tx, old.ID).Version, stand.Row[kid](t, tx, born.ID).Version})
				stand.Equal(t, "in the transaction, head", older.Version, stand.Row[head](t, tx, older.ID).Version)
				stand.Equal(t, "in the transaction, club", joined.Version, 1)
				return ends
			})
			if !errors.Is(err, ends) {
				t.Fatal(err)
			}
			if ends != nil {
				stand.Equal(t, "after the rollback", [2]int64{old.Version, older.Version}, was)
				stand.Equal(t, "after the rollback, new", [2]int64{born.Version, joined.Version}, [2]int64{})
				if old.FamilyID != nil || older.FamilyID != nil {
					t.Errorf("after the rollback they belong to %v and %v", old.FamilyID, older.FamilyID)
				}
			}
			stand.Equal(t, "kid", old.Version, stand.Row[kid](t, db, old.ID).Version)
			stand.Equal(t, "head", older.Version, stand.Row[head](t, db, older.ID).Version)
			stand.Must(t, db.Model(&kid{}).Where("id = ?", old.ID).Update("name", "a rival").Error)
			stand.MustStale(t, db.Model(&old).Update("name", "mine").Error)
			stand.Must(t, db.Model(&older).Update("name", "mine").Error)
		}
	})
}
