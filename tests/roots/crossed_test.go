package roots_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	yard struct {
		Tenant  int64 `gorm:"primaryKey;autoIncrement:false"`
		ID      int64 `gorm:"primaryKey;autoIncrement:false"`
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	// A parcel is a part of a project and stands in a yard, of one tenant.
	parcel struct {
		ID        int64
		Tenant    int64
		ProjectID *int64
		Project   *project `gorm:"foreignKey:Tenant,ProjectID;references:Tenant,ID" gormlock:"root"`
		YardID    *int64
		Yard      *yard `gorm:"foreignKey:Tenant,YardID;references:Tenant,ID"`
	}
	// A zone is a part of a project that has another key than itself, in the same tenant.
	zone struct {
		Tenant    int64 `gorm:"primaryKey;autoIncrement:false"`
		ID        int64 `gorm:"primaryKey;autoIncrement:false"`
		Text      string
		ProjectID *int64
		Project   *project `gorm:"foreignKey:Tenant,ProjectID;references:Tenant,ID" gormlock:"root"`
		Version   int64    `gorm:"not null;default:1" gormlock:"version"`
	}
)

// A part whose other association has a column in common with its root does not become a part of another root.
func TestRoot_thatAnotherAssociationWouldTakeAlong(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&project{}, &yard{}, &parcel{}}, pgtest.Config(func(c *gorm.Config) { c.DisableForeignKeyConstraintWhenMigrating = true }))
	stand.Must(t, db.Exec(`INSERT INTO projects VALUES (1, 7, 1), (2, 7, 1); INSERT INTO yards VALUES (1, 7, 1), (2, 7, 1);
		INSERT INTO parcels VALUES (100, 1, 7, 7)`).Error)
	state := func() (all string) {
		stand.Must(t, db.Raw("SELECT (SELECT string_agg(p::text, ' ' ORDER BY tenant) FROM projects p) || (SELECT string_agg(c::text, ' ' ORDER BY id) FROM parcels c)").Scan(&all).Error)
		return all
	}
	before := state()
	for name, write := range map[string]func(c *parcel) error{
		"Create":   func(c *parcel) error { return db.Create(c).Error },
		"slice":    func(c *parcel) error { return db.Create([]*parcel{c}).Error },
		"Save":     func(c *parcel) error { return db.Save(c).Error },
		"existing": func(c *parcel) error { c.ID = 100; return db.Save(c).Error },
		"Updates":  func(c *parcel) error { c.ID = 100; return db.Updates(c).Error },
	} {
		for _, tenants := range [][2]int64{{1, 2}, {2, 1}} {
			c := &parcel{Project: &project{}, Yard: &yard{}}
			stand.Must(t, db.First(c.Project, "tenant = ?", tenants[0]).Error)
			stand.Must(t, db.First(c.Yard, "tenant = ?", tenants[1]).Error)
			if err := write(c); err == nil || !strings.Contains(err.Error(), "parcel.Project holds") {
				t.Errorf("%s %v: %v", name, tenants, err)
			}
			stand.Equal(t, name, state(), before)
		}
	}
}

// A key with a zero part is a key: a part that holds the root of its foreign key is stored, and the root moves.
func TestRoot_ofAKeyWithAZeroPart(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&project{}, &zone{}})
	for _, key := range [][2]int64{{4, 2}, {0, 2}, {4, 0}} {
		stand.Must(t, db.Exec("TRUNCATE projects, zones CASCADE").Error)
		stand.Must(t, db.Exec("INSERT INTO projects VALUES (?, ?, 1), (?, 9, 1)", key[0], key[1], key[0]).Error)
		stand.Must(t, db.Exec("INSERT INTO zones VALUES (?, 3, '', ?, 1)", key[0], key[1]).Error)
		version := int64(1)
		for name, write := range map[string]func(z *zone) error{
			"Save":    func(z *zone) error { return db.Save(z).Error },
			"slice":   func(z *zone) error { return db.Save([]*zone{z}).Error },
			"Updates": func(z *zone) error { return db.Updates(z).Error },
			"Update":  func(z *zone) error { return db.Model(z).Update("text", "other").Error },
			"full":    func(z *zone) error { return db.Session(&gorm.Session{FullSaveAssociations: true}).Save(z).Error },
			"Append": func(z *zone) error {
				p := z.Project
				z.Project = nil
				return db.Model(z).Association("Project").Append(p)
			},
		} {
			var z zone
			stand.Must(t, db.First(&z, "id = 3").Error)
			z.Project = &project{}
			stand.Must(t, db.First(z.Project, "id = ?", key[1]).Error)
			z.Text += "x"
			if err := write(&z); err != nil {
				t.Errorf("%v %s: %v", key, name, err)
				continue
			}
			was := version
			stand.Must(t, db.Raw("SELECT version FROM projects WHERE id = ?", key[1]).Scan(&version).Error)
			if version == was || z.Project.Version != version {
				t.Errorf("%v %s: the root was at %d, is at %d, and the struct has %d", key, name, was, version, z.Project.Version)
			}
		}
		var z zone
		stand.Must(t, db.First(&z, "id = 3").Error)
		z.Project = &project{}
		stand.Must(t, db.First(z.Project, "id = 9").Error)
		stand.Must(t, db.Save(&z).Error)
		var of int64
		stand.Must(t, db.Raw("SELECT project_id FROM zones").Scan(&of).Error)
		stand.Equal(t, "the root after a move", of, 9)
	}
}
