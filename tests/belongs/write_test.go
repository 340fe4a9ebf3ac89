package belongs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

func ptr(n int64) *int64 { return &n }

// What is asked for happens: a key that is named or assigned is stored although the struct still holds what it was read with, and
// what is assigned is stored as GORM does. Another Save changes nothing.
func TestWrite_whatIsAskedFor(t *testing.T) {
	t.Parallel()
	was := state{Name: "n", Desk: "x", Land: 1, Home: 1, Version: 2}
	land2, home2, none, desk2, mine := was, was, was, was, was
	land2.Land, home2.Home, none.Home, desk2.Desk, mine.Name = 2, 2, 0, "y", "mine"
	type writing struct {
		want  state
		write func(db *gorm.DB, c *clerk) error
	}
	cases := map[string]writing{
		"Update":       {land2, func(db *gorm.DB, c *clerk) error { return db.Model(c).Update("land_id", 2).Error }},
		"Update home":  {home2, func(db *gorm.DB, c *clerk) error { return db.Model(c).Update("home_id", 2).Error }},
		"Update desk":  {desk2, func(db *gorm.DB, c *clerk) error { return db.Model(c).Update("DeskCode", "y").Error }},
		"Update NULL":  {none, func(db *gorm.DB, c *clerk) error { return db.Model(c).Update("home_id", nil).Error }},
		"UpdateColumn": {land2, func(db *gorm.DB, c *clerk) error { return db.Model(c).UpdateColumn("land_id", 2).Error }},
		"expression": {land2, func(db *gorm.DB, c *clerk) error {
			return db.Model(c).Update("land_id", gorm.Expr("land_id + 1")).Error
		}},
		"Updates": {land2, func(db *gorm.DB, c *clerk) error {
			return db.Model(c).Updates(map[string]any{"LandID": int32(2), "name": "n"}).Error
		}},
		"Updates of *map": {land2, func(db *gorm.DB, c *clerk) error { return db.Model(c).Updates(&map[string]any{"land_id": 2}).Error }},
		"Updates of form": {land2, func(db *gorm.DB, c *clerk) error { return db.Model(c).Updates(struct{ LandID int64 }{2}).Error }},
		"Updates of model": {land2, func(db *gorm.DB, c *clerk) error {
			return db.Model(c).Updates(clerk{LandID: 2}).Error
		}},
		"Select": {land2, func(db *gorm.DB, c *clerk) error {
			return db.Model(c).Select("land_id").Updates(map[string]any{"land_id": 2}).Error
		}},
		"Omit":  {land2, func(db *gorm.DB, c *clerk) error { return db.Model(c).Omit("Land").Update("land_id", 2).Error }},
		"slice": {land2, func(db *gorm.DB, c *clerk) error { return db.Model([]*clerk{c}).Update("land_id", 2).Error }},
		"both agree": {land2, func(db *gorm.DB, c *clerk) error {
			c.Land = &land{ID: 2}
			return db.Model(c).Update("land_id", 2).Error
		}},
		"own and map": {land2, func(db *gorm.DB, c *clerk) error { c.LandID = 2; return db.Model(c).Update("land_id", 2).Error }},
		"own and form": {land2, func(db *gorm.DB, c *clerk) error {
			c.LandID = 2
			return db.Model(c).Updates(struct{ LandID int64 }{2}).Error
		}},
		"Save":                    {land2, func(db *gorm.DB, c *clerk) error { c.LandID = 2; return db.Save(c).Error }},
		"Save, omitted":           {land2, func(db *gorm.DB, c *clerk) error { c.LandID = 2; return db.Omit(clause.Associations).Save(c).Error }},
		"Save, selected":          {land2, func(db *gorm.DB, c *clerk) error { c.LandID = 2; return db.Select("LandID").Updates(c).Error }},
		"Save home":               {home2, func(db *gorm.DB, c *clerk) error { c.HomeID = ptr(2); return db.Save(c).Error }},
		"Save desk":               {desk2, func(db *gorm.DB, c *clerk) error { c.DeskCode = "y"; return db.Save(c).Error }},
		"Save of slice":           {land2, func(db *gorm.DB, c *clerk) error { c.LandID = 2; return db.Save([]*clerk{c}).Error }},
		"Updates of itself":       {land2, func(db *gorm.DB, c *clerk) error { c.LandID = 2; return db.Updates(c).Error }},
		"another column":          {mine, func(db *gorm.DB, c *clerk) error { return db.Model(c).Update("name", "mine").Error }},
		"own, another column":     {mine, func(db *gorm.DB, c *clerk) error { c.LandID = 2; return db.Model(c).Update("name", "mine").Error }},
		"assigned, Save":          {land2, func(db *gorm.DB, c *clerk) error { c.Land = &land{ID: 2}; return db.Save(c).Error }},
		"assigned home, Save":     {home2, func(db *gorm.DB, c *clerk) error { c.Home = &land{ID: 2}; return db.Save(c).Error }},
		"assigned desk, Save":     {desk2, func(db *gorm.DB, c *clerk) error { c.Desk = desk{ID: 12, Code: "y"}; return db.Save(c).Error }},
		"assigned, Save of slice": {land2, func(db *gorm.DB, c *clerk) error { c.Land = &land{ID: 2}; return db.Save([]*clerk{c}).Error }},
		"assigned, Updates":       {land2, func(db *gorm.DB, c *clerk) error { c.Land = &land{ID: 2}; return db.Updates(c).Error }},
		"assigned, Update":        {land2, func(db *gorm.DB, c *clerk) error { c.Land = &land{ID: 2}; return db.Model(c).Update("name", "n").Error }},
		"assigned in the map": {land2, func(db *gorm.DB, c *clerk) error {
			return db.Model(c).Updates(map[string]any{"Land": &land{ID: 2}}).Error
		}},
		"blind": {land2, func(db *gorm.DB, c *clerk) error {
			c.LandID = 2
			return db.Clauses(gormlock.IgnoreVersion()).Save(c).Error
		}},
		"blind, assigned": {land2, func(db *gorm.DB, c *clerk) error {
			c.Land = &land{ID: 2}
			return db.Clauses(gormlock.IgnoreVersion()).Save(c).Error
		}},
		"Association": {land2, func(db *gorm.DB, c *clerk) error { return db.Model(c).Association("Land").Append(&land{ID: 2}) }},
	}
	stand.OnBoth(t, all, func(t *testing.T, db *gorm.DB) {
		for name, c := range cases {
			row := &settled(t, db)[0]
			stand.Must(t, c.write(db, row))
			stand.Equal(t, name, stored(t, db, 1), c.want)
			if strings.HasPrefix(name, "own, ") {
				stand.Equal(t, name+": land", row.LandID, 2) // as assigned, and not saved yet
				c.want.Land = 2
			} else {
				consistent(t, name, row)
				stand.Equal(t, name+": struct", stateOf(row), c.want)
			}
			stand.Must(t, db.Save(row).Error)
			c.want.Version++
			stand.Equal(t, name+", Save", stored(t, db, 1), c.want)
			consistent(t, name+", Save", row)
		}
	})
}

// A foreign key that is empty says nothing: what the struct holds decides, as in GORM.
func TestWrite_emptyKey(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, all, func(t *testing.T, db *gorm.DB) {
		for name, write := range map[string]func(c *clerk) error{
			"Save":   func(c *clerk) error { return db.Save(c).Error },
			"slice":  func(c *clerk) error { return db.Save([]*clerk{c}).Error },
			"Update": func(c *clerk) error { return db.Model(c).Update("name", "n").Error },
		} {
			c := &settled(t, db)[0]
			c.LandID, c.HomeID, c.Home = 0, nil, &land{ID: 2}
			stand.Must(t, write(c))
			stand.Equal(t, name, stored(t, db, 1), state{Name: "n", Desk: "x", Land: 1, Home: 2, Version: 2})
			c.HomeID, c.Home = nil, nil
			stand.Must(t, db.Save(c).Error)
			stand.Equal(t, name+", both emptied", stored(t, db, 1).Home, 0)
		}
	})
}

// A new association is created, and its key is stored.
func TestWrite_newAssociation(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, all, func(t *testing.T, db *gorm.DB) {
		for name, write := range map[string]func(c *clerk) error{
			"Save":   func(c *clerk) error { return db.Save(c).Error },
			"Update": func(c *clerk) error { return db.Model(c).Update("name", "x").Error },
			"slice":  func(c *clerk) error { return db.Model([]*clerk{c}).Update("name", "x").Error },
		} {
			c := &settled(t, db)[0]
			c.Land = &land{ID: 0, Name: fmt.Sprint("new ", name)}
			if db.Name() == "postgres" {
				stand.Must(t, db.Exec("SELECT setval(pg_get_serial_sequence('lands','id'), 100)").Error)
			}
			stand.Must(t, write(c))
			if c.Land.ID == 0 || stored(t, db, 1).Land != c.Land.ID {
				t.Errorf("%s: %+v, stored %+v", name, c.Land, stored(t, db, 1))
			}
		}
	})
}

// Where a key that is named and an association that is assigned contradict each other, nothing is written, and the error names
// both.
func TestWrite_contradictions(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, all, func(t *testing.T, db *gorm.DB) {
		for name, write := range map[string]func(c *clerk) error{
			"Update": func(c *clerk) error { c.Land = &land{ID: 2}; return db.Model(c).Update("land_id", 3).Error },
			"expression": func(c *clerk) error {
				c.Land = &land{ID: 2}
				return db.Model(c).Update("land_id", gorm.Expr("3")).Error
			},
			"new": func(c *clerk) error { c.Land = &land{Name: "new"}; return db.Model(c).Update("land_id", 3).Error },
			"in the map": func(c *clerk) error {
				return db.Model(c).Updates(map[string]any{"LandID": 3, "Land": &land{ID: 2}}).Error
			},
			"Save, both assigned": func(c *clerk) error { c.LandID, c.Land = 3, &land{ID: 2}; return db.Save(c).Error },
			"blind, both assigned": func(c *clerk) error {
				c.LandID, c.Land = 3, &land{ID: 2}
				return db.Clauses(gormlock.IgnoreVersion()).Save(c).Error
			},
		} {
			c := &settled(t, db)[0]
			err := write(c)
			if err == nil || errors.Is(err, gormlock.ErrStale) || !strings.Contains(err.Error(), "clerk.Land") && !strings.Contains(err.Error(), "clerk.Home") || !strings.Contains(err.Error(), "nil") {
				t.Errorf("%s: %v", name, err)
			}
			stand.Equal(t, name, stored(t, db, 1), state{Name: "n", Desk: "x", Land: 1, Home: 1, Version: 1})
			var lands int64
			stand.Must(t, db.Model(&land{}).Count(&lands).Error)
			stand.Equal(t, name+": lands", lands, 3)
		}
	})
}

// A stale struct with an association that was assigned is stale, however it is saved.
func TestWrite_stale(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, all, func(t *testing.T, db *gorm.DB) {
		for name, write := range map[string]func(clerks []clerk) error{
			"Save":             func(clerks []clerk) error { return db.Save(&clerks[0]).Error },
			"slice":            func(clerks []clerk) error { return db.Save(clerks).Error },
			"pointers":         func(clerks []clerk) error { return db.Save([]*clerk{&clerks[1], &clerks[0]}).Error },
			"Updates":          func(clerks []clerk) error { return db.Updates(&clerks[0]).Error },
			"Updates of a few": func(clerks []clerk) error { return db.Model(clerks[:1]).Update("name", "x").Error },
		} {
			clerks := settled(t, db)
			stand.MustDo(t, db.Exec("UPDATE clerks SET version = 2, land_id = 3 WHERE id = 1"))
			clerks[0].Land = &land{ID: 2}
			if err := write(clerks); !errors.Is(err, gormlock.ErrStale) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// No row of a batch gets the key of another, and the caller's map stays as it was.
func TestWrite_batches(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, all, func(t *testing.T, db *gorm.DB) {
		clerks := settled(t, db)
		form := map[string]any{"name": "x"}
		stand.Must(t, db.Model(&clerks).Updates(form).Error)
		stand.Equal(t, "first", stored(t, db, 1), state{Name: "x", Desk: "x", Land: 1, Home: 1, Version: 2})
		stand.Equal(t, "second", stored(t, db, 2), state{Name: "x", Desk: "y", Land: 2, Home: 2, Version: 2})
		clerks[0].Land = &land{ID: 3}
		stand.Must(t, db.Model(&clerks[0]).Updates(form).Error)
		stand.Equal(t, "the map", fmt.Sprint(form), "map[name:x]")
		stand.Equal(t, "moved", stored(t, db, 1).Land, 3)

		clerks[0].Land = &land{ID: 1}
		if err := db.Model(&clerks).Update("name", "y").Error; err == nil || !strings.Contains(err.Error(), "clerk.Land") {
			t.Errorf("one of two is to move: %v", err)
		}
		stand.Equal(t, "not moved", stored(t, db, 1).Land, 3)
		clerks[0].Land, clerks[1].Land = &land{ID: 1}, &land{ID: 1}
		stand.Must(t, db.Model(&clerks).Update("name", "y").Error)
		stand.Equal(t, "both moved", stored(t, db, 1).Land+stored(t, db, 2).Land, 2)
		stand.Must(t, db.Save(&clerks).Error)
		stand.Equal(t, "both saved", stored(t, db, 1).Land+stored(t, db, 2).Land, 2)
	})
}

// What is assigned and omitted stays for the next save.
func TestWrite_omitted(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, all, func(t *testing.T, db *gorm.DB) {
		c := &settled(t, db)[0]
		c.Land, c.Home = &land{ID: 2}, nil
		stand.Must(t, db.Omit(clause.Associations).Save(c).Error)
		stand.Must(t, db.Model(c).Updates(struct{ Name string }{"n"}).Error)
		stand.Equal(t, "omitted", stored(t, db, 1), state{Name: "n", Desk: "x", Land: 1, Home: 1, Version: 3})
		stand.Must(t, db.Save(c).Error)
		stand.Equal(t, "saved", stored(t, db, 1), state{Name: "n", Desk: "x", Land: 2, Home: 1, Version: 4})
	})
}

// A foreign key that is emptied and stored without its association takes that from the struct, or the next save would store it again.
func TestWrite_emptiedAndOmitted(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, all, func(t *testing.T, db *gorm.DB) {
		for name, write := range map[string]func(c *clerk) error{
			"Omit":   func(c *clerk) error { return db.Omit(clause.Associations).Save(c).Error },
			"Select": func(c *clerk) error { return db.Select("home_id").Updates(c).Error },
		} {
			c := &settled(t, db)[0]
			c.HomeID = nil
			stand.Must(t, write(c))
			stand.Equal(t, name, stored(t, db, 1).Home, 0)
			stand.Must(t, db.Save(c).Error)
			stand.Equal(t, name+", Save", stored(t, db, 1).Home, 0)

			c.Home = &land{ID: 2}
			stand.Must(t, write(c))
			stand.Must(t, db.Save(c).Error)
			stand.Equal(t, name+", assigned", stored(t, db, 1).Home, 2)
		}
	})
}

// A write that fails, by itself or by a hook of the association, leaves the struct with what it held.
func TestWrite_failed(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, all, func(t *testing.T, db *gorm.DB) {
		c := &settled(t, db)[0]
		rival(t, db, moved)
		for name, write := range map[string]func() error{
			"Update":  func() error { return db.Model(c).Update("land_id", 3).Error },
			"Updates": func() error { return db.Model(c).Updates(clerk{LandID: 3}).Error },
			"Save":    func() error { c.LandID = 3; defer func() { c.LandID = 1 }(); return db.Save(c).Error },
		} {
			_ = stand.MustBeStale(t, write())
			if c.LandID != 1 || c.Land == nil || c.Land.ID != 1 {
				t.Errorf("%s: %+v", name, c)
			}
		}
	})
}

// What a write emptied because the row no longer belonged to it is back after a rollback, with the foreign key.
func TestWrite_rolledBack(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, all, func(t *testing.T, db *gorm.DB) {
		for name, write := range map[string]func(tx *gorm.DB, c *clerk) error{
			"Update":     func(tx *gorm.DB, c *clerk) error { return tx.Model(c).Update("land_id", 2).Error },
			"Save":       func(tx *gorm.DB, c *clerk) error { c.LandID = 2; return tx.Save(c).Error },
			"expression": func(tx *gorm.DB, c *clerk) error { return tx.Model(c).Update("land_id", gorm.Expr("2")).Error },
		} {
			c := &settled(t, db)[0]
			_ = db.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, tx.Transaction(func(tx *gorm.DB) error {
					stand.Must(t, write(tx, c))
					if c.Land != nil {
						t.Errorf("%s: it still holds land %d", name, c.Land.ID)
					}
					return nil
				}))
				return errors.New("back")
			})
			if c.Land == nil || c.Land.ID != 1 {
				t.Errorf("%s, rolled back: %+v", name, c.Land)
			}
			if name != "Save" {
				consistent(t, name, c)
			}
		}
	})
}

// A struct that the caller moved to the place of another in its slice gets nothing of the other's.
func TestWrite_rolledBackAndMoved(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, all, func(t *testing.T, db *gorm.DB) {
		for name, write := range map[string]func(tx *gorm.DB, c *clerk) error{
			"Update": func(tx *gorm.DB, c *clerk) error { return tx.Model(c).Update("land_id", 3).Error },
			"merge": func(tx *gorm.DB, c *clerk) error {
				base := *c
				rival(t, tx, map[string]any{"land_id": 3})
				c.Name = "mine"
				return gormlock.SaveMerged(tx, c, &base)
			},
		} {
			clerks := settled(t, db)
			clerks[1].Land = nil
			_ = db.Transaction(func(tx *gorm.DB) error {
				stand.Must(t, write(tx, &clerks[0]))
				clerks[0], clerks[1] = clerks[1], clerks[0]
				return errors.New("back")
			})
			if clerks[0].Land != nil {
				t.Errorf("%s: the second holds the land of the first, %+v", name, clerks[0].Land)
			}
			if name == "merge" { // it reads in the transaction, so what stands in its place counts as not read
				stand.MustDo(t, db.First(&clerks[0]))
			}
			stand.Must(t, db.Save(&clerks[0]).Error)
			stand.Equal(t, name, stored(t, db, 2).Land, 2)
		}
	})
}
