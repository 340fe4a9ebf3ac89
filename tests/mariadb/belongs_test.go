package mariadb_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type harbour struct {
	ID   int64
	Name string `gorm:"size:20"`
}

// ship has a foreign key that may be NULL, and one that may not.
type ship struct {
	ID      int64
	Name    string `gorm:"size:20"`
	HomeID  int64
	Home    *harbour
	BoundID *int64
	Bound   *harbour
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func harbourID(n int64) *int64 { return &n }

// A foreign key is stored if it was asked for: by its name, in the struct, or by the association that was assigned. The one that
// was read beside it is not stored again.
func TestBelongs(t *testing.T) {
	t.Parallel()
	named := clause.OnConflict{DoUpdates: clause.AssignmentColumns([]string{"name", "home_id"})}
	writes := map[string]struct {
		home, bound int64
		write       func(db *gorm.DB, s *ship) error
	}{
		"another column": {1, 1, func(db *gorm.DB, s *ship) error { return db.Model(s).Update("name", "x").Error }},
		"Save":           {1, 1, func(db *gorm.DB, s *ship) error { return db.Save(s).Error }},
		"Update":         {2, 1, func(db *gorm.DB, s *ship) error { return db.Model(s).Update("home_id", 2).Error }},
		"Update NULL":    {1, 0, func(db *gorm.DB, s *ship) error { return db.Model(s).Update("bound_id", nil).Error }},
		"Updates, map": {2, 2, func(db *gorm.DB, s *ship) error {
			return db.Model(s).Updates(map[string]any{"HomeID": 2, "bound_id": 2}).Error
		}},
		"Updates, form": {2, 1, func(db *gorm.DB, s *ship) error { return db.Model(s).Updates(ship{HomeID: 2}).Error }},
		"Select":        {2, 1, func(db *gorm.DB, s *ship) error { s.HomeID = 2; return db.Select("home_id").Updates(s).Error }},
		"Omit": {1, 2, func(db *gorm.DB, s *ship) error {
			s.Home, s.Bound = nil, &harbour{ID: 2}
			return db.Omit("Home").Save(s).Error
		}},
		"Save, keys": {2, 2, func(db *gorm.DB, s *ship) error { s.HomeID, s.BoundID = 2, harbourID(2); return db.Save(s).Error }},
		"Save, associations": {2, 2, func(db *gorm.DB, s *ship) error {
			s.Home, s.Bound = &harbour{ID: 2}, &harbour{ID: 2}
			return db.Save(s).Error
		}},
		"Update, association": {2, 1, func(db *gorm.DB, s *ship) error {
			s.Home = &harbour{ID: 2}
			return db.Model(s).Update("name", "x").Error
		}},
		"Save of a slice":     {2, 1, func(db *gorm.DB, s *ship) error { s.HomeID = 2; return db.Save([]*ship{s}).Error }},
		"upsert, association": {2, 1, func(db *gorm.DB, s *ship) error { s.Home = &harbour{ID: 2}; return db.Clauses(named).Create(s).Error }},
		"upsert of all, keys": {2, 1, func(db *gorm.DB, s *ship) error {
			s.HomeID = 2
			return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(s).Error
		}},
		"FullSaveAssociations": {1, 1, func(db *gorm.DB, s *ship) error {
			return db.Session(&gorm.Session{FullSaveAssociations: true}).Save(s).Error
		}},
		"both, and they agree": {2, 1, func(db *gorm.DB, s *ship) error { s.HomeID, s.Home = 2, &harbour{ID: 2}; return db.Save(s).Error }},
		"ExpectVersion, by key": {2, 1, func(db *gorm.DB, s *ship) error {
			s.HomeID = 2
			return db.Clauses(gormlock.ExpectVersion(1)).Save(s).Error
		}},
	}
	for name, opts := range map[string][]mariaserver.Option{"RETURNING": nil, "like MySQL": {stand.LikeMySQL}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := mariaserver.Open(t, []any{&harbour{}, &ship{}}, opts...)
			stand.Must(t, db.Create([]harbour{{ID: 1}, {ID: 2}, {ID: 3}}).Error)
			id := int64(0)
			launched := func() *ship {
				id++
				stand.Must(t, db.Create(&ship{ID: id, Name: "n", HomeID: 1, BoundID: harbourID(1)}).Error)
				var s ship
				stand.Must(t, db.Preload("Home").Preload("Bound").First(&s, id).Error)
				return &s
			}
			stored := func() [2]int64 {
				row := stand.Row[ship](t, db, id)
				if row.BoundID == nil {
					return [2]int64{row.HomeID}
				}
				return [2]int64{row.HomeID, *row.BoundID}
			}
			for what, one := range writes {
				s, want := launched(), [2]int64{one.home, one.bound}
				stand.Must(t, one.write(db, s))
				stand.Equal(t, what, stored(), want)
				stand.Must(t, db.Save(s).Error)
				stand.Equal(t, what+", and Save", stored(), want)
			}
			for what, write := range map[string]func(s *ship) error{
				"Update": func(s *ship) error { s.Home = &harbour{ID: 2}; return db.Model(s).Update("home_id", 3).Error },
				"Save":   func(s *ship) error { s.HomeID, s.Home = 3, &harbour{ID: 2}; return db.Save(s).Error },
			} {
				if err := write(launched()); err == nil || !strings.Contains(err.Error(), "ship.Home") {
					t.Errorf("%s, key and association contradict each other: %v", what, err)
				}
				stand.Equal(t, what, stored(), [2]int64{1, 1})
			}
			s := launched()
			stand.Must(t, db.Model(&ship{}).Where("id = ?", id).Updates(map[string]any{"home_id": 2}).Error)
			stand.MustStale(t, db.Save(s).Error)
			stand.MustStale(t, db.Model(s).Update("home_id", 3).Error)
			stand.Equal(t, "stale", stored(), [2]int64{2, 1})
		})
	}
}
