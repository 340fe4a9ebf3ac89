package roots_test

import (
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	project struct {
		Tenant  int64 `gorm:"primaryKey;autoIncrement:false"`
		ID      int64 `gorm:"primaryKey;autoIncrement:false"`
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	// The foreign key shares the column tenant with the key, as tables of several tenants do.
	task struct {
		Tenant    int64 `gorm:"primaryKey;autoIncrement:false"`
		ID        int64 `gorm:"primaryKey;autoIncrement:false"`
		Text      string
		ProjectID int64
		Project   *project `gorm:"foreignKey:Tenant,ProjectID;references:Tenant,ID" gormlock:"root"`
	}
	freeTask struct {
		ID        int64
		Tenant    int64
		ProjectID int64
		Project   *project `gorm:"foreignKey:Tenant,ProjectID;references:Tenant,ID" gormlock:"root"`
	}
	versionedTask struct {
		Tenant    int64 `gorm:"primaryKey;autoIncrement:false"`
		ID        int64 `gorm:"primaryKey;autoIncrement:false"`
		ProjectID int64
		Project   *project `gorm:"foreignKey:Tenant,ProjectID;references:Tenant,ID"`
		Version   int64    `gorm:"not null;default:1" gormlock:"version"`
	}
	nullableTask struct {
		Tenant    int64 `gorm:"primaryKey;autoIncrement:false"`
		ID        int64 `gorm:"primaryKey;autoIncrement:false"`
		ProjectID *int64
		Project   *project `gorm:"foreignKey:Tenant,ProjectID;references:Tenant,ID"`
		Version   int64    `gorm:"not null;default:1" gormlock:"version"`
	}
)

func tenants(t *testing.T) (db *gorm.DB, of func(id int64) *project, version func(id int64) int64) {
	db = stand.Versioned(t, []any{&project{}, &task{}, &freeTask{}, &versionedTask{}, &nullableTask{}},
		pgtest.Config(func(c *gorm.Config) { c.DisableForeignKeyConstraintWhenMigrating = true }))
	stand.Must(t, db.Create(&[]project{{Tenant: 1, ID: 7}, {Tenant: 1, ID: 8}, {Tenant: 2, ID: 7}}).Error)
	of = func(id int64) *project {
		p := project{}
		stand.Must(t, db.First(&p, "tenant = 1 AND id = ?", id).Error)
		return &p
	}
	return db, of, func(id int64) int64 { return of(id).Version }
}

// A part whose foreign key lacks a part, and has the tenant, belongs to nothing yet.
func TestRoot_keyThatIsFilledIn(t *testing.T) {
	t.Parallel()
	db, of, version := tenants(t)
	upsert := func() *gorm.DB { return db.Clauses(clause.OnConflict{UpdateAll: true}) }
	for name, write := range map[string]func() error{
		"Create":                    func() error { return db.Create(&task{Tenant: 1, ID: 1, Project: of(7)}).Error },
		"Create of a slice":         func() error { return db.Create(&[]task{{Tenant: 1, ID: 2, Project: of(7)}}).Error },
		"upsert":                    func() error { return upsert().Create(&task{Tenant: 1, ID: 3, Project: of(7)}).Error },
		"Save":                      func() error { return db.Save(&task{Tenant: 1, ID: 4, Project: of(7)}).Error },
		"without a shared column":   func() error { return db.Create(&freeTask{Tenant: 1, Project: of(7)}).Error },
		"upsert, versioned":         func() error { return upsert().Create(&versionedTask{Tenant: 1, ID: 3, Project: of(7)}).Error },
		"Save of a slice":           func() error { return db.Save(&[]versionedTask{{Tenant: 1, ID: 4, Project: of(7)}}).Error },
		"upsert, pointer":           func() error { return upsert().Create(&nullableTask{Tenant: 1, ID: 3, Project: of(7)}).Error },
		"Save of a slice, pointers": func() error { return db.Save(&[]nullableTask{{Tenant: 1, ID: 4, Project: of(7)}}).Error },
	} {
		if err := write(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	stand.Equal(t, "version of the root", version(7), 6)
	stand.Equal(t, "parts", db.Find(&[]task{}, "project_id = 7").RowsAffected, 4)
	stand.Equal(t, "others", db.Find(&[]versionedTask{}, "project_id = 7").RowsAffected+db.Find(&[]nullableTask{}, "project_id = 7").RowsAffected, 4)

	other := project{}
	stand.Must(t, db.First(&other, "tenant = 2").Error)
	for name, err := range map[string]error{
		"another tenant":                         db.Create(&task{Tenant: 1, ID: 9, Project: &other}).Error,
		"another tenant, without a shared one":   db.Create(&freeTask{Tenant: 1, Project: &other}).Error,
		"an upsert of another tenant":            upsert().Create(&task{Tenant: 1, ID: 9, Project: &other}).Error,
		"an upsert of another tenant, versioned": upsert().Create(&versionedTask{Tenant: 1, ID: 9, Project: &other}).Error,
	} {
		if err == nil || stand.FromServer(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A row whose foreign key has only the tenant is written like one without a root, and gets a root.
func TestRoot_keyWithTheTenantAlone(t *testing.T) {
	t.Parallel()
	db, of, version := tenants(t)
	for id := range int64(6) {
		stand.Must(t, db.Create(&task{Tenant: 1, ID: id + 1}).Error)
	}
	read := func(id int64) (x task) {
		stand.Must(t, db.First(&x, "tenant = 1 AND id = ?", id).Error)
		return x
	}
	one, two, three := read(1), read(2), read(3)
	stand.Must(t, db.Model(&one).Update("text", "x").Error)
	stand.Must(t, db.Model(&task{}).Where("id = 1").Update("text", "y").Error)
	stand.Must(t, db.Save(&[]task{read(1)}).Error)
	one.Project = of(7)
	stand.Must(t, db.Save(&one).Error)
	stand.Equal(t, "Save", version(7), 2)
	stand.Must(t, db.Model(&two).Association("Project").Append(of(7)))
	stand.Equal(t, "Append", version(7), 3)
	stand.Must(t, db.Model(&three).Update("project_id", 7).Error)
	stand.Must(t, db.Model(&task{}).Where("id = 4").Update("project_id", 7).Error)
	stand.Equal(t, "Update", version(7), 5)
	stand.Must(t, db.Delete(&task{Tenant: 1, ID: 5}).Error)
	stand.Must(t, db.Where("id = 6").Delete(&task{}).Error)
	stand.Equal(t, "parts", db.Find(&[]task{}, "project_id = 7").RowsAffected, 4)
	one.ProjectID, one.Project = 0, nil
	stand.Must(t, db.Save(&one).Error)
	stand.Equal(t, "unlinked", version(7), 6)

	n := nullableTask{Tenant: 1, ID: 1, Project: of(7)}
	stand.Must(t, db.Create(&n).Error)
	n.ProjectID, n.Project = nil, of(8)
	stand.Must(t, db.Save(&n).Error)
	stand.Must(t, db.First(&n).Error)
	stand.Equal(t, "emptied, and given another", *n.ProjectID, 8)
	v := versionedTask{Tenant: 1, ID: 1, Project: of(7)}
	stand.Must(t, db.Create(&v).Error)
	v.ProjectID = 0
	stand.Must(t, db.Save(&v).Error)
	stand.Equal(t, "emptied", db.Find(&[]versionedTask{}, "project_id = 0").RowsAffected, 1)

	stand.Must(t, db.Create(&project{Tenant: 1}).Error) // whose key has a zero
	stand.Must(t, db.Create(&task{Tenant: 1, ID: 20}).Error)
	stand.Must(t, db.Model(&task{}).Where("id = 20").Update("text", "x").Error)
	stand.Equal(t, "a root with a zero in its key", version(0), 3)
}
