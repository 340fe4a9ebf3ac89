package belongs_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A condition before Association(…) that leaves an owner out is an error: GORM has changed the struct by then, and its next save would store that.
func TestAssociation_whoseConditionLeavesAnOwnerOut(t *testing.T) {
	t.Parallel()
	to := func(db *gorm.DB, one any) *gorm.Association {
		return db.Where("estates.note = ?", "x").Model(one).Association("Agent")
	}
	read := func(t *testing.T, db *gorm.DB, id int64) estate {
		t.Helper()
		var one estate
		stand.Must(t, db.Preload("Agent").First(&one, id).Error)
		return one
	}
	both := func(t *testing.T, db *gorm.DB) (all []estate) {
		t.Helper()
		stand.Must(t, db.Preload("Agent").Order("id").Find(&all).Error)
		return all
	}
	for how, do := range map[string]func(t *testing.T, db *gorm.DB) error{
		"Append": func(t *testing.T, db *gorm.DB) error {
			one, other := read(t, db, 2), stand.Row[agent](t, db, 14)
			return to(db, &one).Append(&other)
		},
		"Append of a new one": func(t *testing.T, db *gorm.DB) error {
			one := read(t, db, 2)
			return to(db, &one).Append(&agent{Code: 1, Name: "new"})
		},
		"Replace": func(t *testing.T, db *gorm.DB) error {
			one, other := read(t, db, 2), stand.Row[agent](t, db, 14)
			return to(db, &one).Replace(&other)
		},
		"Replace, unscoped": func(t *testing.T, db *gorm.DB) error {
			one, other := read(t, db, 2), stand.Row[agent](t, db, 14)
			return to(db, &one).Unscoped().Replace(&other)
		},
		"Replace for many": func(t *testing.T, db *gorm.DB) error {
			all, other, another := both(t, db), stand.Row[agent](t, db, 14), stand.Row[agent](t, db, 15)
			return to(db, &all).Replace(&other, &another)
		},
		"Clear": func(t *testing.T, db *gorm.DB) error {
			one := read(t, db, 2)
			return to(db, &one).Clear()
		},
		"Clear for many": func(t *testing.T, db *gorm.DB) error {
			all := both(t, db)
			return to(db, &all).Clear()
		},
	} {
		for where, outside := range map[string]bool{"alone": true, "in a transaction": false} {
			t.Run(how+", "+where, func(t *testing.T) {
				t.Parallel()
				db := estates(t)
				before := agentsOf(t, db)
				in := func(db *gorm.DB) error { return do(t, db) }
				if !outside {
					in = inTransaction(in)
				}
				if err := in(db); err == nil || !strings.Contains(err.Error(), "leave an owner out") {
					t.Errorf("%v", err)
				}
				if two := stand.Row[estate](t, db, 2); two.AgentID == nil || *two.AgentID != 13 {
					t.Errorf("%+v", two)
				}
				stand.Equal(t, "agents", len(agentsOf(t, db)), len(before))
			})
		}
	}
	t.Run("one that it finds", func(t *testing.T) {
		t.Parallel()
		db := estates(t)
		one, other := read(t, db, 1), stand.Row[agent](t, db, 14)
		stand.Must(t, to(db, &one).Append(&other))
		stand.Equal(t, "agent", *stand.Row[estate](t, db, 1).AgentID, 14)
		stand.Must(t, to(db, &one).Clear())
		one.Note = "z"
		stand.Must(t, db.Save(&one).Error)
		if now := stand.Row[estate](t, db, 1); now.AgentID != nil || now.Note != "z" {
			t.Errorf("%+v", now)
		}
	})
}

type (
	lodge struct {
		ID      int64
		Rooms   []lodgeRoom  `gorm:"foreignKey:LodgeID"`
		Halls   []*lodgeRoom `gorm:"foreignKey:HallOf"`
		Signs   []lodgeSign  `gorm:"polymorphic:Of"`
		Guests  []lodgeGuest `gorm:"many2many:lodge_visits"`
		Version int64        `gorm:"not null;default:1" gormlock:"version"`
	}
	lodgeRoom struct {
		ID              int64
		Name            string
		LodgeID, HallOf *int64
		Version         int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	lodgeSign struct {
		ID      int64
		Name    string
		OfID    *int64
		OfType  *string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	lodgeGuest struct {
		ID      int64
		Name    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

// GORM would unlink or delete the row that Replace of a has-many makes of a map, together with the old ones.
func TestReplace_byTheRowOfAMap(t *testing.T) {
	t.Parallel()
	row := func(name string) map[string]any { return map[string]any{"name": name} }
	for _, relation := range []string{"Rooms", "Halls", "Signs"} {
		for how, do := range map[string]func(a *gorm.Association) error{
			"a map":            func(a *gorm.Association) error { return a.Replace(row("new")) },
			"a pointer to one": func(a *gorm.Association) error { m := row("new"); return a.Replace(&m) },
			"maps":             func(a *gorm.Association) error { return a.Replace(row("new"), row("newer")) },
			"a slice of maps":  func(a *gorm.Association) error { return a.Replace([]map[string]any{row("new"), row("newer")}) },
			"unscoped":         func(a *gorm.Association) error { return a.Unscoped().Replace(row("new")) },
		} {
			for where, outside := range map[string]bool{"alone": true, "in a transaction": false} {
				t.Run(relation+", "+how+", "+where, func(t *testing.T) {
					t.Parallel()
					db := lodges(t)
					var one lodge
					stand.Must(t, db.Preload(relation).First(&one, 1).Error)
					in := func(db *gorm.DB) error { return do(db.Model(&one).Association(relation)) }
					if !outside {
						in = func(db *gorm.DB) (err error) {
							failed := db.Transaction(func(tx *gorm.DB) error { err = do(tx.Model(&one).Association(relation)); return nil })
							stand.Equal(t, "it may commit", failed == nil, false)
							return err
						}
					}
					if err := in(db); err == nil || !strings.Contains(err.Error(), "give it a struct") {
						t.Errorf("%v", err)
					}
					var left int64
					stand.Must(t, db.Raw("SELECT count(*) FROM lodge_rooms WHERE name = 'old' AND (lodge_id = 1 OR hall_of = 1)").Scan(&left).Error)
					stand.Equal(t, "rooms", left, 2)
					stand.Must(t, db.Raw("SELECT count(*) FROM lodge_signs WHERE name = 'old' AND of_id = 1").Scan(&left).Error)
					stand.Equal(t, "signs", left, 1)
					stand.Equal(t, "all rooms", db.Find(&[]lodgeRoom{}).RowsAffected, 2)
					stand.Equal(t, "all signs", db.Find(&[]lodgeSign{}).RowsAffected, 1)
				})
			}
		}
	}
	t.Run("what stays as it is", func(t *testing.T) {
		t.Parallel()
		db := lodges(t)
		var one lodge
		stand.Must(t, db.First(&one, 1).Error)
		stand.Must(t, db.Model(&one).Association("Guests").Replace(row("new")))
		stand.Equal(t, "guests", db.Model(&one).Association("Guests").Count(), 1)
		stand.Must(t, db.Model(&one).Association("Rooms").Append(row("new")))
		stand.Equal(t, "rooms", db.Model(&one).Association("Rooms").Count(), 2)
		stand.Must(t, db.Model(&one).Association("Rooms").Replace(&lodgeRoom{Name: "newer"}))
		stand.Equal(t, "rooms", db.Model(&one).Association("Rooms").Count(), 1)
	})
}

func lodges(t *testing.T) *gorm.DB {
	t.Helper()
	db := stand.Open(t)
	stand.Must(t, db.AutoMigrate(&lodge{}, &lodgeRoom{}, &lodgeSign{}, &lodgeGuest{}))
	stand.Must(t, db.Create(&lodge{Rooms: []lodgeRoom{{Name: "old"}}, Halls: []*lodgeRoom{{Name: "old"}}, Signs: []lodgeSign{{Name: "old"}}, Guests: []lodgeGuest{{Name: "old"}}}).Error)
	return db
}
