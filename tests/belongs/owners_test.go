package belongs_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	lodger struct {
		ID      int64
		RoomID  *int64
		Room    *lodging
		Badge   *lodgerBadge
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	lodging struct {
		ID   int64
		Name string
	}
	lodgerBadge struct {
		ID       int64
		LodgerID *int64
		Name     string
		Version  int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

// GORM returns only the error of the last one of several owners: the first that is refused makes the others be refused too.
func TestAssociation_ofSeveralOwners(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&lodging{}, &lodger{}, &lodgerBadge{}}, func(t *testing.T, db *gorm.DB) {
		for name, call := range map[string]func(a *gorm.Association, one, two any) error{
			"Append":  func(a *gorm.Association, one, two any) error { return a.Append(one, two) },
			"Replace": func(a *gorm.Association, one, two any) error { return a.Replace(one, two) },
		} {
			for _, stale := range []int{-1, 0, 1} {
				for _, relation := range []string{"Room", "Badge"} {
					for _, way := range []struct{ inside, full bool }{{}, {inside: true}, {full: true}, {inside: true, full: true}} {
						owners := []*lodger{{}, {}}
						stand.MustDo(t, db.Create(&owners))
						if stale >= 0 {
							stand.MustDo(t, db.Model(&lodger{}).Where("id = ?", owners[stale].ID).Update("room_id", nil))
						}
						var one, two any = &lodging{Name: "one"}, &lodging{Name: "two"}
						if relation == "Badge" {
							badges := []*lodgerBadge{{Name: "one"}, {Name: "two"}}
							stand.MustDo(t, db.Create(&badges))
							if one, two = badges[0], badges[1]; stale >= 0 {
								stand.MustDo(t, db.Model(&lodgerBadge{}).Where("id = ?", badges[stale].ID).Update("name", "rival's"))
							}
						}
						write := func(db *gorm.DB) error {
							return call(db.Session(&gorm.Session{FullSaveAssociations: way.full}).Model(&owners).Association(relation), one, two)
						}
						var err error
						if way.inside {
							_ = db.Transaction(func(tx *gorm.DB) error { err = write(tx); return err })
						} else {
							err = write(db)
						}
						if stale >= 0 != errors.Is(err, gormlock.ErrStale) || stale < 0 && err != nil {
							t.Errorf("%s of %s, stale %d, %+v: %v", name, relation, stale, way, err)
						}
					}
				}
			}
		}
	})
}

// A call that failed is over: the next one by the same Association is another.
func TestAssociation_ofSeveralOwnersIsTriedAgain(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&lodging{}, &lodger{}, &lodgerBadge{}}, func(t *testing.T, db *gorm.DB) {
		owners := []*lodger{{}, {}}
		stand.MustDo(t, db.Create(&owners))
		stand.MustDo(t, db.Model(&lodger{}).Where("id = ?", owners[0].ID).Update("room_id", nil))
		rooms := db.Model(&owners).Association("Room")
		stand.MustStale(t, rooms.Replace(&lodging{Name: "one"}, &lodging{Name: "two"}))
		for _, owner := range owners {
			*owner = stand.Row[lodger](t, db, owner.ID)
		}
		again := db.Model(&owners).Association("Room")
		stand.Must(t, again.Replace(&lodging{Name: "one"}, &lodging{Name: "two"}))
		for _, owner := range owners {
			if stand.Row[lodger](t, db, owner.ID).RoomID == nil {
				t.Error("an owner has no room")
			}
		}
	})
}
