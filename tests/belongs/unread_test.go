package belongs_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// mustContradict fails the test unless err names the association, and the cure.
func mustContradict(t *testing.T, name string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), ".Land holds") || !strings.Contains(err.Error(), "set Land to nil") {
		t.Errorf("%s: %v", name, err)
	}
}

// The row tells which of the two was assigned only to a struct that was read from it as it is. Other structs must hold what they name.
func TestUnread_keyAndAssociationMustAgree(t *testing.T) {
	t.Parallel()
	second, blind := gormlock.ExpectVersion(2), gormlock.IgnoreVersion()
	renamed, same := map[string]any{"name": "rival"}, map[string]any{"land_id": 2}
	byKey := func(c *clerk) { c.LandID = 2 }
	byAssociation := func(c *clerk) { c.Land = &land{ID: 2} }
	unread := func(c *clerk) { c.LandID, c.Version = 2, 0 }
	stand.OnBoth(t, all, func(t *testing.T, db *gorm.DB) {
		for name, c := range map[string]struct {
			rival  map[string]any
			assign func(c *clerk)
			write  func(c *clerk) error
		}{
			"expected, by key":         {renamed, byKey, func(c *clerk) error { return db.Clauses(second).Save(c).Error }},
			"expected, by association": {renamed, byAssociation, func(c *clerk) error { return db.Clauses(second).Save(c).Error }},
			"expected, unread":         {renamed, unread, func(c *clerk) error { return db.Clauses(second).Updates(c).Error }},
			"expected by a map": {renamed, byAssociation, func(c *clerk) error {
				return db.Model(c).Updates(map[string]any{"name": "x", "version": 2}).Error
			}},
			"blind, by key":         {same, byKey, func(c *clerk) error { return db.Clauses(blind).Save(c).Error }},
			"blind, by association": {same, byAssociation, func(c *clerk) error { return db.Clauses(blind).Save(c).Error }},
			"blind, a slice":        {same, byKey, func(c *clerk) error { return db.Clauses(blind).Save([]*clerk{c}).Error }},
			"upsert, unread": {nil, unread, func(c *clerk) error {
				return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(c).Error
			}},
		} {
			one := &settled(t, db)[0]
			if c.rival != nil {
				rival(t, db, c.rival)
			}
			c.assign(one)
			before := stored(t, db, 1)
			mustContradict(t, name, c.write(one))
			stand.Equal(t, name, stored(t, db, 1), before)
			one.LandID, one.Land = 3, &land{ID: 3}
			stand.Must(t, c.write(one))
			stand.Equal(t, name+", and they agree", stored(t, db, 1).Land, int64(map[bool]int{true: 1, false: 3}[name == "expected by a map"]))
		}
	})
}

// A statement that names the association and its key stores what was assigned of the two.
func TestUnread_bothSelected(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, all, func(t *testing.T, db *gorm.DB) {
		for name, write := range map[string]func(c *clerk) error{
			"two": func(c *clerk) error { return db.Select("Land", "LandID").Updates(c).Error },
			"all": func(c *clerk) error { return db.Select("*", "Land").Updates(c).Error },
		} {
			c := &settled(t, db)[0]
			c.LandID = 2
			stand.Must(t, write(c))
			stand.Equal(t, name, stored(t, db, 1).Land, 2)
			c = &settled(t, db)[0]
			c.Land = &land{ID: 2}
			stand.Must(t, write(c))
			stand.Equal(t, name+", assigned", stored(t, db, 1).Land, 2)
		}
	})
}

type (
	// seal has a key that the server spells in its own way, and a foreign key that may change without its version.
	seal struct {
		ID      string `gorm:"type:uuid;primaryKey"`
		LandID  int64
		Land    *land
		HomeID  int64 `gormlock:"unversioned"`
		Home    *land
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	// port has a key of two parts, of which the server makes one.
	port struct {
		LandID int64 `gorm:"primaryKey;autoIncrement:false"`
		ID     int64 `gorm:"primaryKey;autoIncrement"`
		Name   string
	}
	boat struct {
		ID      int64
		LandID  int64
		PortID  int64
		Port    *port `gorm:"foreignKey:LandID,PortID;references:LandID,ID"`
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

func TestUnread_keysThatTheServerSpells(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&part{}, &land{}, &seal{}})
	stand.MustDo(t, db.Create(&[]land{{ID: 1}, {ID: 2}}))
	seals := []seal{{ID: "ABCDEF00-0000-4000-8000-000000000001", LandID: 1, HomeID: 1}, {ID: "ABCDEF00-0000-4000-8000-000000000002", LandID: 1, HomeID: 1}}
	stand.MustDo(t, db.Create(&seals))
	home := &land{ID: 1}
	for i := range seals {
		seals[i].LandID, seals[i].Land, seals[i].Home = 2, home, home
	}
	stand.MustDo(t, db.Save(&seals[0]))
	stand.MustDo(t, db.Save(&seals))
	for i := range seals {
		stand.Equal(t, "land", stand.Row[seal](t, db, seals[i].ID).LandID, 2)
	}
	seals[0].Home = &land{ID: 2}
	if err := db.Save(&seals[0]).Error; err == nil || !strings.Contains(err.Error(), "seal.Home") {
		t.Errorf("a foreign key without a version: %v", err)
	}
	seals[0].HomeID = 2
	stand.MustDo(t, db.Save(&seals[0]))
	stand.Equal(t, "home", stand.Row[seal](t, db, seals[0].ID).HomeID, 2)
}

// A key whose last part the server is to make is none yet, though it equals the foreign key.
func TestUnread_newWithAPartOfTheKey(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&port{}})
	stand.MustDo(t, db.Exec("CREATE TABLE boats (id bigserial PRIMARY KEY, land_id bigint, port_id bigint, version bigint NOT NULL DEFAULT 1)"))
	for name, write := range map[string]func(b *boat) error{
		"Save":  func(b *boat) error { return db.Save(b).Error },
		"slice": func(b *boat) error { return db.Save([]*boat{b}).Error },
	} {
		b := boat{LandID: 7}
		stand.MustDo(t, db.Omit("Port").Create(&b))
		b.Port = &port{LandID: 7, Name: name}
		stand.Must(t, write(&b))
		if row := stand.Row[boat](t, db, b.ID); row.PortID == 0 || b.Port == nil || row.PortID != b.Port.ID {
			t.Errorf("%s: %+v, stored %+v", name, b, row)
		}
	}
}

// A part of a key may be zero, even if that is its default: what was read has its key.
func TestUnread_zeroPartOfAKey(t *testing.T) {
	t.Parallel()
	type pier struct {
		Tenant int64 `gorm:"primaryKey;autoIncrement:false;default:0"`
		ID     int64 `gorm:"primaryKey;autoIncrement:false"`
	}
	type ferry struct {
		ID             int64
		Tenant, PierID int64
		Pier           *pier `gorm:"foreignKey:Tenant,PierID;references:Tenant,ID"`
		Version        int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	db := stand.Versioned(t, []any{&pier{}, &ferry{}})
	stand.MustDo(t, db.Exec("INSERT INTO piers (tenant, id) VALUES (0, 5), (0, 6)"))
	stand.MustDo(t, db.Exec("INSERT INTO ferries (id, tenant, pier_id, version) VALUES (1, 0, 5, 1)"))
	var f ferry
	stand.MustDo(t, db.Preload("Pier").First(&f, 1))
	f.PierID = 6
	stand.MustDo(t, db.Save(&f))
	stand.Equal(t, "pier", stand.Row[ferry](t, db, 1).PierID, 6)
}

// More structs than one statement can name are asked for in several.
func TestUnread_manyStructs(t *testing.T) {
	t.Parallel()
	type berth struct {
		A, B    int64 `gorm:"primaryKey;autoIncrement:false"`
		LandID  int64
		Land    *land
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	db := stand.Versioned(t, []any{&part{}, &land{}, &berth{}})
	stand.MustDo(t, db.Create(&[]land{{ID: 1}, {ID: 2}}))
	const n = 15_001 // two parts of each key are more than the 30,000 of one
	stand.MustDo(t, db.Exec("INSERT INTO berths (a, b, land_id, version) SELECT i, 1, 1, 1 FROM generate_series(1, ?) i", n))
	var berths []berth
	stand.MustDo(t, db.Preload("Land").Find(&berths))
	for i := range berths {
		berths[i].LandID = 2
	}
	stand.MustDo(t, db.Save(&berths))
	var moved int64
	stand.MustDo(t, db.Model(&berth{}).Where("land_id = 2").Count(&moved))
	stand.Equal(t, "moved", moved, n)
}
