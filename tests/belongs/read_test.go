package belongs_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// What a rival moved stays moved when the struct that was read with its associations is read again and written: the row that
// was read says what the struct belongs to.
func TestRead_again(t *testing.T) {
	t.Parallel()
	reads := map[string]func(db *gorm.DB, c *clerk) error{
		"First":      func(db *gorm.DB, c *clerk) error { return db.First(c, 1).Error },
		"Take":       func(db *gorm.DB, c *clerk) error { return db.Take(c).Error },
		"Find":       func(db *gorm.DB, c *clerk) error { return db.Model(&clerk{}).Where("id = 1").Find(c).Error },
		"Scan":       func(db *gorm.DB, c *clerk) error { return db.Model(&clerk{}).Where("id = 1").Scan(c).Error },
		"Raw, Scan":  func(db *gorm.DB, c *clerk) error { return db.Raw("SELECT * FROM clerks WHERE id=1").Scan(c).Error },
		"Raw, First": func(db *gorm.DB, c *clerk) error { return db.Raw("SELECT * FROM clerks WHERE id=1").First(c).Error },
		"Select": func(db *gorm.DB, c *clerk) error {
			return db.Select("land_id", "home_id", "desk_code", "version").First(c, 1).Error
		},
		"Omit":        func(db *gorm.DB, c *clerk) error { return db.Omit("name").First(c, 1).Error },
		"Preload":     func(db *gorm.DB, c *clerk) error { return db.Preload("Land").Preload("Home").First(c, 1).Error },
		"Preload all": func(db *gorm.DB, c *clerk) error { return db.Preload(clause.Associations).First(c, 1).Error },
		"Joins": func(db *gorm.DB, c *clerk) error {
			return db.Joins("Land").Joins("Home").Joins("Desk").First(c, 1).Error
		},
		"InnerJoins":  func(db *gorm.DB, c *clerk) error { return db.InnerJoins("Land").First(c, 1).Error },
		"FirstOrInit": func(db *gorm.DB, c *clerk) error { return db.FirstOrInit(c, "id = 1").Error },
		"FirstOrCreate": func(db *gorm.DB, c *clerk) error {
			return db.Where("id = 1").FirstOrCreate(c).Error
		},
		"an update": func(db *gorm.DB, c *clerk) error { return db.Model(c).Clauses(expectSecond).Update("name", "n").Error },
		"an update that returns": func(db *gorm.DB, c *clerk) error {
			return db.Model(c).Clauses(expectSecond, clause.Returning{}).UpdateColumn("name", "n").Error
		},
		"an update of a map": func(db *gorm.DB, c *clerk) error {
			return db.Model(c).Updates(map[string]any{"name": "n", "version": 2}).Error
		},
		"an update by a form": func(db *gorm.DB, c *clerk) error {
			return db.Model(c).Updates(struct {
				Name    string
				Version int64
			}{"n", 2}).Error
		},
	}
	writes := map[string]func(db *gorm.DB, c *clerk) error{
		"Save":          func(db *gorm.DB, c *clerk) error { c.Name = "mine"; return db.Save(c).Error },
		"Save of slice": func(db *gorm.DB, c *clerk) error { c.Name = "mine"; return db.Save([]*clerk{c}).Error },
		"Updates":       func(db *gorm.DB, c *clerk) error { c.Name = "mine"; return db.Updates(c).Error },
		"Update":        func(db *gorm.DB, c *clerk) error { return db.Model(c).Update("name", "mine").Error },
		"FullSave": func(db *gorm.DB, c *clerk) error {
			c.Name = "mine"
			return db.Session(&gorm.Session{FullSaveAssociations: true}).Save(c).Error
		},
	}
	stand.OnBoth(t, all, func(t *testing.T, db *gorm.DB) {
		for reading, read := range reads {
			for writing, write := range writes {
				for _, to := range []map[string]any{moved, {"land_id": 2, "home_id": nil, "desk_code": "y"}} {
					name := reading + ", " + writing
					c := &settled(t, db)[0]
					rival(t, db, to)
					stand.Must(t, read(db, c))
					consistent(t, name, c)
					want := stored(t, db, 1)
					stand.Must(t, write(db, c))
					consistent(t, name, c)
					want.Name, want.Version = "mine", want.Version+1
					stand.Equal(t, name, stored(t, db, 1), want)
				}
			}
		}
	})
}

// What is assigned and not saved stays if the row that is read belongs to what it did. So does what GORM reads along.
func TestRead_keeps(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, all, func(t *testing.T, db *gorm.DB) {
		c := &settled(t, db)[0]
		c.Land, c.Desk = &land{ID: 2}, desk{ID: 12, Code: "y"}
		home := c.Home
		rival(t, db, map[string]any{"name": "theirs"})
		stand.Must(t, db.First(c, 1).Error)
		stand.Equal(t, "home", c.Home, home)
		stand.Must(t, db.Save(c).Error)
		stand.Equal(t, "row", stored(t, db, 1), state{Name: "theirs", Land: 2, Home: 1, Desk: "y", Version: 3})

		c = &settled(t, db)[0]
		rival(t, db, moved)
		stand.Must(t, db.Joins("Land", db.Select("name")).First(c, 1).Error)
		if c.Land != nil && c.Land.ID == 1 {
			t.Errorf("it holds land 1 with the name of another: %+v", c.Land)
		}
		c = &clerk{}
		stand.Must(t, db.Joins("Land", db.Select("name")).First(c, 1).Error)
		if c.Land == nil || c.Land.Name != "b" {
			t.Errorf("what was read along is gone: %+v", c.Land)
		}

		c = &settled(t, db)[0] // a read that finds nothing
		land := c.Land
		if err := db.Where("name = 'none'").First(c).Error; err == nil {
			t.Error("it found something")
		}
		stand.Equal(t, "land", c.Land, land)
	})
}
