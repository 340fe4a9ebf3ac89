// Package belongs_test holds what a struct belongs to against its foreign key: what is read, what is assigned, what is asked for.
package belongs_test

import (
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type part struct {
	ID   int64
	Name string
}

type land struct {
	ID     int64
	Name   string
	PartID *int64
	Part   *part
}

// clerk has foreign keys of each kind: a number, one that may be NULL, and the code of a struct that is held by value.
type clerk struct {
	ID       int64
	Name     string
	LandID   int64
	Land     *land
	HomeID   *int64
	Home     *land
	DeskCode string
	Desk     desk  `gorm:"foreignKey:DeskCode;references:Code"`
	Version  int64 `gorm:"not null;default:1" gormlock:"version"`
}

type desk struct {
	ID   int64
	Code string `gorm:"uniqueIndex"`
}

var all = []any{&part{}, &land{}, &desk{}, &clerk{}}

// settled are clerks with their first land, home and desk, read with all that they belong to.
func settled(t *testing.T, db *gorm.DB) []clerk {
	t.Helper()
	for _, table := range []string{"clerks", "lands", "parts", "desks"} {
		stand.Must(t, db.Exec("DELETE FROM "+table).Error)
	}
	stand.Must(t, db.Create(&[]land{{ID: 1, Name: "a"}, {ID: 2, Name: "b"}, {ID: 3, Name: "c"}}).Error)
	stand.Must(t, db.Create(&[]desk{{ID: 11, Code: "x"}, {ID: 12, Code: "y"}, {ID: 13, Code: "z"}}).Error)
	one, two := int64(1), int64(2)
	stand.Must(t, db.Omit("Land", "Home", "Desk").Create(&[]clerk{
		{ID: 1, Name: "n", LandID: 1, HomeID: &one, DeskCode: "x"}, {ID: 2, Name: "n", LandID: 2, HomeID: &two, DeskCode: "y"},
	}).Error)
	var clerks []clerk
	stand.Must(t, db.Preload("Land").Preload("Home").Preload("Desk").Order("id").Find(&clerks).Error)
	if c := clerks[0]; c.Land.ID != 1 || c.Home.ID != 1 || c.Desk.ID != 11 {
		t.Fatalf("%+v", c)
	}
	return clerks
}

// state is what a row holds, in short.
type state struct {
	Name, Desk string
	Land, Home int64 // 0: NULL
	Version    int64
}

func stateOf(c *clerk) state {
	s := state{Name: c.Name, Desk: c.DeskCode, Land: c.LandID, Version: c.Version}
	if c.HomeID != nil {
		s.Home = *c.HomeID
	}
	return s
}

func stored(t *testing.T, db *gorm.DB, id int64) state {
	t.Helper()
	c := stand.Row[clerk](t, db, id)
	return stateOf(&c)
}

// rival moves clerk 1, and its version.
func rival(t *testing.T, db *gorm.DB, values map[string]any) {
	t.Helper()
	stand.Must(t, db.Model(&clerk{}).Where("id = 1").Updates(values).Error)
}

var moved = map[string]any{"land_id": 2, "home_id": 2, "desk_code": "y"}

// consistent fails the test if a struct holds something that it does not belong to.
func consistent(t *testing.T, what string, c *clerk) {
	t.Helper()
	home := c.Home == nil || c.HomeID != nil && c.Home.ID == *c.HomeID
	if c.Land != nil && c.Land.ID != c.LandID || !home || c.Desk.ID != 0 && c.Desk.Code != c.DeskCode {
		t.Errorf("%s: it holds what it does not belong to: %+v, land %+v, home %+v", what, c, c.Land, c.Home)
	}
}

var expectSecond = gormlock.ExpectVersion(2)
