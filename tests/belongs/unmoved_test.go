package belongs_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type (
	mother struct {
		ID      int64
		Code    string       `gorm:"type:char(5);uniqueIndex"`
		UUID    string       `gorm:"type:uuid;uniqueIndex"`
		ByCode  []codeChild  `gorm:"foreignKey:MotherCode;references:Code"`
		ByUUID  []uuidChild  `gorm:"foreignKey:MotherUUID;references:UUID"`
		One     *nullChild   `gorm:"foreignKey:MotherID"`
		Timed   []timedChild `gorm:"foreignKey:MotherID"`
		Plain   []plainChild `gorm:"foreignKey:MotherID"`
		Version int64        `gorm:"not null;default:1" gormlock:"version"`
	}
	codeChild struct {
		ID         int64
		MotherCode string `gorm:"type:char(5)"`
		Name       string
		Version    int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	uuidChild struct {
		ID         int64
		MotherUUID string `gorm:"type:uuid"`
		Name       string
		Version    int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	nullChild struct {
		ID       int64
		MotherID sql.NullInt64
		Name     string
		Version  int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	timedChild struct {
		ID       int64
		MotherID *int64
		Name     string
		Version  time.Time `gormlock:"version"`
	}
	plainChild struct {
		ID       int64
		MotherID *int64
		Name     string
		Version  int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	pair struct {
		A       string      `gorm:"primaryKey"`
		B       int64       `gorm:"primaryKey;autoIncrement:false"`
		Kids    []pairChild `gorm:"foreignKey:PairA,PairB"`
		Name    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
	pairChild struct {
		ID      int64
		PairA   *string
		PairB   *int64
		Name    string
		Version int64 `gorm:"not null;default:1" gormlock:"version"`
	}
)

// A child of whose foreign key Go thinks that it changes, and which the row has already, is no child that somebody has deleted.
func TestChild_thatIsLinkedAlready(t *testing.T) {
	t.Parallel()
	const id, capitals = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"
	for name, c := range map[string]struct {
		change func(t *testing.T, db *gorm.DB, m *mother)
		table  string
	}{
		"char": {func(t *testing.T, db *gorm.DB, m *mother) {
			m.Code = "ab"
			m.ByCode = []codeChild{stand.Row[codeChild](t, db, 1)}
		}, "code_children"},
		"uuid": {func(t *testing.T, db *gorm.DB, m *mother) {
			m.UUID = capitals
			m.ByUUID = []uuidChild{stand.Row[uuidChild](t, db, 1)}
		}, "uuid_children"},
		"sql.Null":      {func(_ *testing.T, _ *gorm.DB, m *mother) { m.One.MotherID = sql.NullInt64{} }, "null_children"},
		"nil, put back": {func(_ *testing.T, _ *gorm.DB, m *mother) { m.Plain[0].MotherID = nil }, "plain_children"},
		"nil, a time":   {func(_ *testing.T, _ *gorm.DB, m *mother) { m.Timed[0].MotherID = nil }, "timed_children"},
		"read without it": {func(t *testing.T, db *gorm.DB, m *mother) {
			var k plainChild
			stand.Must(t, db.Select("id", "name", "version").First(&k, 1).Error)
			m.Plain = []plainChild{k}
		}, "plain_children"},
		"linked by SQL": {func(t *testing.T, db *gorm.DB, m *mother) {
			stand.Must(t, db.Exec("UPDATE plain_children SET mother_id = NULL").Error)
			m.Plain = []plainChild{stand.Row[plainChild](t, db, 1)}
			stand.Must(t, db.Exec("UPDATE plain_children SET mother_id = 1").Error)
		}, "plain_children"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, []any{&mother{}, &codeChild{}, &uuidChild{}, &nullChild{}, &timedChild{}, &plainChild{}})
			made := mother{ID: 1, Code: "ab", UUID: id, ByCode: []codeChild{{ID: 1}}, ByUUID: []uuidChild{{ID: 1}}, One: &nullChild{ID: 1}, Timed: []timedChild{{ID: 1}}, Plain: []plainChild{{ID: 1}}}
			stand.Must(t, db.Create(&made).Error)
			var m mother
			stand.Must(t, db.Preload("One").Preload("Plain").Preload("Timed").First(&m, 1).Error)
			c.change(t, db, &m)
			stand.Must(t, db.Save(&m).Error)
			stand.Must(t, db.Save(&m).Error) // and what it holds then is the row
			stand.Must(t, db.Session(&gorm.Session{FullSaveAssociations: true}).Save(&m).Error)
			stand.Must(t, db.Preload("One").Preload("Plain").Preload("Timed").First(&m, 1).Error)
			c.change(t, db, &m)
			if c.table != "timed_children" {
				stand.Must(t, db.Exec("UPDATE "+c.table+" SET version = version + 1, name = 'of a rival'").Error)
			} else {
				stand.Must(t, db.Exec("UPDATE timed_children SET version = version + interval '1 hour', name = 'of a rival'").Error)
			}
			if name != "linked by SQL" { // it is the same row, and it is said that the struct is old
				if err := db.Save(&m).Error; err == nil || strings.Contains(err.Error(), "gone") || strings.Count(err.Error(), "is stale") != 1 {
					t.Errorf("after a rival: %v", err)
				}
			}
			var n string
			stand.MustDo(t, db.Raw("SELECT name FROM "+c.table).Scan(&n))
			stand.Equal(t, "the rival's write", n, "of a rival")
		})
	}
}

// A zero is a part of a key of several, also behind a pointer.
func TestChild_ofAKeyWithAZero(t *testing.T) {
	t.Parallel()
	stand.OnBoth(t, []any{&pair{}, &pairChild{}}, func(t *testing.T, db *gorm.DB) {
		p := pair{A: "x", Kids: []pairChild{{ID: 1}}}
		stand.Must(t, db.Create(&p).Error)
		for range 3 {
			p.Name += "a"
			stand.Must(t, db.Save(&p).Error)
		}
		stand.Must(t, db.Model(&p).Association("Kids").Append(&pairChild{ID: 2}))
		stand.Must(t, db.Save(&p).Error)
		stand.Must(t, gormlock.Touch(db, &p.Kids[0]))
		stand.Must(t, db.Save(&p).Error)
	})
}

// A child proposes a time that no row has. It passes what a table demands of times.
func TestChild_whoseTimesAreChecked(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&mother{}, &codeChild{}, &uuidChild{}, &nullChild{}, &timedChild{}, &plainChild{}})
	stand.Must(t, db.Exec("ALTER TABLE timed_children ADD CONSTRAINT later CHECK (version > '2020-01-01')").Error)
	m := mother{ID: 1, Code: "ab", UUID: "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", Timed: []timedChild{{ID: 1}}}
	stand.Must(t, db.Create(&m).Error)
	stand.Must(t, db.Preload("Timed").First(&m, 1).Error)
	stand.Must(t, db.Save(&m).Error)
	kept := m.Timed[0].Version
	stand.Must(t, db.Exec("UPDATE timed_children SET mother_id = NULL").Error) // by SQL, which does not move the version
	stand.Must(t, db.Save(&m).Error)
	now := stand.Row[timedChild](t, db, 1).Version
	if !now.After(kept) || now.After(time.Now().Add(time.Hour)) {
		t.Errorf("the version went from %s to %s", kept, now)
	}
}
