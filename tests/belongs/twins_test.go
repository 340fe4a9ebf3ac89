package belongs_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/tests/internal/stand"
)

// A crew has a key of several texts, and so have its hands and its ports.
type (
	crew struct {
		Area, Name string  `gorm:"primaryKey"`
		Hands      []hand  `gorm:"foreignKey:CrewArea,CrewName"`
		Ports      []haven `gorm:"many2many:crew_ports"`
		ChiefID    *int64
		Chief      *chief
		Version    int64 `gormlock:"version"`
	}
	hand struct {
		Area, Name         string `gorm:"primaryKey"`
		CrewArea, CrewName string
		Crew               *crew `gorm:"foreignKey:CrewArea,CrewName"`
		Text               string
		Version            int64 `gormlock:"version"`
	}
	haven struct {
		Area, Name string `gorm:"primaryKey"`
		Text       string
		Flags      []string `gorm:"type:text;serializer:json"`
		Version    int64    `gormlock:"version"`
	}
	roster struct {
		ID     int64
		Places []place
	}
	place struct {
		RosterID, No int64 `gorm:"primaryKey;autoIncrement:false"`
		Text         string
		Version      int64 `gormlock:"version"`
	}
	chief struct {
		ID      int64
		Text    string
		Version int64 `gormlock:"version"`
	}
)

var ofCrews = []any{&chief{}, &haven{}, &crew{}, &hand{}, &roster{}, &place{}}

func countOf[T any](t *testing.T, db *gorm.DB) (n int64) {
	t.Helper()
	stand.Must(t, db.Model(new(T)).Count(&n).Error)
	return n
}

func chiefAt(id int64, text string) *chief { return &chief{ID: id, Text: text} }

// Of two structs that GORM takes for one row, it saves one and leaves out the other.
func TestTwins_areNotLeftOut(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, ofCrews, func(t *testing.T, db *gorm.DB) {
		whole := db.Session(&gorm.Session{FullSaveAssociations: true})
		twin := func(text string, version int64) hand {
			return hand{Area: "t", Name: "w", Text: text, Version: version}
		}
		for name, c := range map[string]struct {
			save func() error
			says string
		}{
			"keys that read the same, has-many": {func() error {
				return db.Create(&crew{Area: "1", Name: "x", Hands: []hand{{Area: "a_b", Name: "c"}, {Area: "a", Name: "b_c"}}}).Error
			}, "joins the parts"},
			"keys that read the same, many-to-many": {func() error {
				return db.Create(&crew{Area: "2", Name: "x", Ports: []haven{{Area: "a_b", Name: "c"}, {Area: "a", Name: "b_c"}}}).Error
			}, "joins the parts"},
			"keys that read the same, two crews": {func() error {
				return whole.Create([]crew{{Area: "3", Name: "x", Hands: []hand{{Area: "a_b", Name: "c"}}}, {Area: "3", Name: "y", Hands: []hand{{Area: "a", Name: "b_c"}}}}).Error
			}, "joins the parts"},
			"keys with that of a new crew": {func() error {
				return db.Create(&roster{Places: []place{{No: 1, Text: "x"}, {No: 1, Text: "y"}}}).Error
			}, "that differ"},
			"new twins": {func() error {
				return db.Create(&crew{Area: "4", Name: "x", Hands: []hand{twin("x", 0), twin("y", 0)}}).Error
			}, "that differ"},
			"twins saved whole": {func() error {
				return whole.Save(&crew{Area: "5", Name: "x", Hands: []hand{twin("x", 1), twin("y", 1)}}).Error
			}, "that differ"},
			"twins of several versions": {func() error {
				return whole.Save(&crew{Area: "6", Name: "x", Hands: []hand{twin("x", 1), twin("x", 2)}}).Error
			}, "that differ"},
			"twins in two crews": {func() error {
				return db.Create([]crew{{Area: "7", Name: "x", Hands: []hand{twin("x", 0)}}, {Area: "7", Name: "y", Hands: []hand{twin("x", 0)}}}).Error
			}, "one parent"},
			"twins by Append": {func() error {
				stand.Must(t, db.Create(&crew{Area: "8", Name: "x"}).Error)
				c := crew{Area: "8", Name: "x", Version: 1}
				return db.Model(&c).Association("Hands").Append(&hand{Area: "n", Name: "n", Text: "x"}, &hand{Area: "n", Name: "n", Text: "y"})
			}, "that differ"},
			"ports": {func() error {
				return whole.Save(&crew{Area: "9", Name: "x", Ports: []haven{{Area: "p", Name: "p", Text: "x", Version: 1}, {Area: "p", Name: "p", Text: "y", Version: 1}}}).Error
			}, "that differ"},
			"chiefs": {func() error {
				return db.Create([]crew{{Area: "10", Name: "x", Chief: chiefAt(1, "x")}, {Area: "10", Name: "y", Chief: chiefAt(1, "y")}}).Error
			}, "that differ"},
		} {
			crews := countOf[crew](t, db)
			if err := c.save(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", name, err)
			}
			if name == "twins by Append" {
				crews++
			}
			if n := countOf[crew](t, db); n != crews {
				t.Errorf("%s: %d crews more", name, n-crews)
			}
			for what, n := range map[string]int64{"rosters": countOf[roster](t, db), "places": countOf[place](t, db), "hands": countOf[hand](t, db), "ports": countOf[haven](t, db), "chiefs": countOf[chief](t, db)} {
				if n > 0 {
					t.Errorf("%s: %d %s", name, n, what)
				}
			}
		}
	})
}

// Structs that say the same of a row, and rows of which GORM writes nothing but the foreign key, may be there twice.
func TestTwins_thatAgree(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, ofCrews, func(t *testing.T, db *gorm.DB) {
		whole := db.Session(&gorm.Session{FullSaveAssociations: true})
		both := chiefAt(1, "both")
		stand.Must(t, db.Create([]crew{{Area: "1", Name: "x", Chief: both}, {Area: "1", Name: "y", Chief: both}}).Error)
		stand.Must(t, db.Create([]crew{{Area: "2", Name: "x", Chief: chiefAt(2, "z")}, {Area: "2", Name: "y", Chief: chiefAt(2, "z")}}).Error)
		one := &hand{Area: "a", Name: "b"}
		stand.Must(t, db.Create(&crew{Area: "3", Name: "x", Hands: []hand{*one, *one}}).Error)
		stand.Equal(t, "hands", countOf[hand](t, db), 1)
		var crews []crew
		stand.Must(t, db.Preload("Hands").Preload("Chief").Order("area, name").Find(&crews).Error)
		crews[2].Chief.Text = "edited" // which Save leaves alone, as GORM does
		stand.Must(t, db.Save(&crews).Error)
		stand.Must(t, whole.Omit("Chief").Save(&crews).Error)
		stand.Must(t, whole.Select("ChiefID").Save(&crews[0]).Error)
		flagged := haven{Area: "f", Name: "f", Flags: []string{"a", "b"}}
		stand.Must(t, whole.Create(&crew{Area: "6", Name: "x", Ports: []haven{flagged, flagged}}).Error)
		linked := crew{Area: "7", Name: "x", Ports: []haven{{Area: "a_b", Name: "c", Version: 1}, {Area: "a", Name: "b_c", Version: 1}}}
		stand.Must(t, db.Create([]haven{{Area: "a_b", Name: "c"}, {Area: "a", Name: "b_c"}}).Error)
		stand.Must(t, db.Omit("Ports.*").Create(&linked).Error)
		stand.Equal(t, "ports", db.Model(&linked).Association("Ports").Count(), 2)
		crews[0].Chief, crews[1].Chief = chiefAt(5, "x"), chiefAt(5, "y")
		stand.Must(t, db.Omit("Chief").Save(&crews).Error)
	})
}

// A Preload that GORM cannot assign is an error.
func TestPreload_ofKeysThatReadTheSame(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, ofCrews, func(t *testing.T, db *gorm.DB) {
		stand.Must(t, db.Create(&crew{Area: "a_b", Name: "c", Hands: []hand{{Area: "1", Name: "1"}}, Ports: []haven{{Area: "1", Name: "1"}}}).Error)
		stand.Must(t, db.Create(&crew{Area: "a", Name: "d", Hands: []hand{{Area: "2", Name: "2"}}}).Error)
		var crews []crew
		stand.Must(t, db.Preload("Hands").Preload("Ports").Find(&crews).Error)
		stand.Must(t, db.Create(&crew{Area: "a", Name: "b_c", Hands: []hand{{Area: "3", Name: "3"}}}).Error)
		for _, name := range []string{"Hands", "Ports", clause.Associations} {
			if err := db.Preload(name).Find(&crews).Error; err == nil || !strings.Contains(err.Error(), "joins the parts") {
				t.Errorf("Preload(%s): %v", name, err)
			}
		}
		for i := range crews {
			one := crew{}
			stand.Must(t, db.Preload("Hands").First(&one, "area = ? AND name = ?", crews[i].Area, crews[i].Name).Error)
			stand.Equal(t, one.Area+"/"+one.Name, len(one.Hands), 1)
		}
		stand.Must(t, db.Preload("Chief").Find(&crews).Error)
		stand.Must(t, db.Find(&crews).Error)
		if err := db.Preload("Hands.Crew").Find(&crews).Error; err == nil || !strings.Contains(err.Error(), "joins the parts") {
			t.Errorf("nested: %v", err)
		}
		var hands []hand // of which each has a crew of its own
		stand.Must(t, db.Create(&hand{Area: "a_b", Name: "c", CrewArea: "a", CrewName: "d"}).Error)
		stand.Must(t, db.Create(&hand{Area: "a", Name: "b_c", CrewArea: "a", CrewName: "d"}).Error)
		stand.Must(t, db.Preload(clause.Associations).Find(&hands, "crew_name = 'd'").Error)

		stand.Must(t, db.Create(&crew{Area: "z", Name: "1", Ports: []haven{{Area: "a_b", Name: "c"}}}).Error)
		two := crew{Area: "z", Name: "2", Ports: []haven{{Area: "a", Name: "b_c"}}}
		stand.Must(t, db.Create(&two).Error)
		stand.Must(t, db.Preload("Ports").Find(&crews, "area = 'z' AND name = '2'").Error)
		for name, read := range map[string]func() error{
			"ports of two": func() error { return db.Preload("Ports").Find(&crews, "area = 'z'").Error },
			"ports of one": func() error {
				stand.Must(t, db.Exec("INSERT INTO crew_ports VALUES ('z', '2', 'a_b', 'c')").Error)
				return db.Preload("Ports").First(&crew{}, "area = 'z' AND name = '2'").Error
			},
		} {
			if err := read(); err == nil || !strings.Contains(err.Error(), "joins the parts") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// If versions begin at 0, the server says whether structs at 0 have a row.
func TestTwins_whoseVersionsBeginAtZero(t *testing.T) {
	t.Parallel()
	type sailor struct {
		ID, ShipID  int64
		Text        string
		LockVersion int64 `gormlock:"version,rails"`
	}
	type ship struct {
		ID      int64
		Sailors []sailor
		Version int64 `gormlock:"version"`
	}
	stand.OnBoth(t, []any{&ship{}, &sailor{}}, func(t *testing.T, db *gorm.DB) {
		twins := []sailor{{ID: 5, Text: "x"}, {ID: 5, Text: "y"}}
		if err := db.Create(&ship{Sailors: twins}).Error; err == nil || !strings.Contains(err.Error(), "that differ") {
			t.Errorf("new twins: %v", err)
		}
		stand.Equal(t, "ships", countOf[ship](t, db), 0)
		stand.Must(t, db.Create(&ship{ID: 1, Sailors: []sailor{{ID: 5, Text: "z"}}}).Error)
		stand.Must(t, db.Save(&ship{ID: 1, Version: 1, Sailors: []sailor{{ID: 5, ShipID: 1, Text: "x"}, {ID: 5, ShipID: 1}}}).Error)
		stand.Equal(t, "text", stand.Row[sailor](t, db, 5).Text, "z") // GORM writes the foreign key alone
	})
}
