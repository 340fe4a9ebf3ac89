package versions_test

import (
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// ZonedBase is what the rows have in common: GORM embeds exported structs.
type ZonedBase struct {
	ID       int64
	ParentID int64
	N        int
}

// zonedRow has a version whose column has a zone, as far as the database knows such columns.
type zonedRow struct {
	ZonedBase `gorm:"embedded"`
	Version   time.Time `gormlock:"version"`
}

type zonedParent struct {
	ID   int64
	Rows []*zonedRow `gorm:"foreignKey:ParentID"`
}

// clockRow has one whose column keeps what a clock shows.
type clockRow struct {
	ZonedBase `gorm:"embedded"`
	Version   time.Time `gorm:"type:timestamp(6) null" gormlock:"version"`
}

type clockParent struct {
	ID   int64
	Rows []*clockRow `gorm:"foreignKey:ParentID"`
}

type zonedForm struct {
	N       int
	Version time.Time
}

// zones are rows of one of the models.
type zones[T any] struct {
	db     *gorm.DB
	fields func(*T) (*ZonedBase, *time.Time)
	parent func(*T) any
}

// writes are the ways to write a row that compare the version given.
func (z zones[T]) writes() map[string]func(row *T) error {
	db := z.db
	model := func(row *T) *gorm.DB {
		only := new(T)
		base, _ := z.fields(only)
		held, _ := z.fields(row)
		base.ID = held.ID
		return db.Model(only)
	}
	id := func(row *T) int64 { base, _ := z.fields(row); return base.ID }
	at := func(row *T) time.Time { _, at := z.fields(row); return *at }
	return map[string]func(row *T) error{
		"Save":          func(row *T) error { return db.Save(row).Error },
		"Save, slice":   func(row *T) error { return db.Save([]*T{row}).Error },
		"upsert":        func(row *T) error { return db.Clauses(stand.UpdateAll).Save([]*T{row}).Error },
		"update":        func(row *T) error { return db.Model(row).Update("n", 8).Error },
		"update, slice": func(row *T) error { return db.Model([]*T{row}).Update("n", 8).Error },
		"map":           func(row *T) error { return model(row).Updates(map[string]any{"n": 8, "version": at(row)}).Error },
		"map of JSON": func(row *T) error {
			return model(row).Updates(map[string]any{"n": 8, "version": at(row).Format(time.RFC3339Nano)}).Error
		},
		"form":          func(row *T) error { return model(row).Updates(zonedForm{8, at(row)}).Error },
		"ExpectVersion": func(row *T) error { return model(row).Clauses(gormlock.ExpectVersion(at(row))).Update("n", 8).Error },
		"ExpectVersion, bulk": func(row *T) error {
			return db.Model(new(T)).Where("id = ?", id(row)).Clauses(gormlock.ExpectVersion(at(row))).Update("n", 8).Error
		},
		"children": func(row *T) error {
			return db.Session(&gorm.Session{FullSaveAssociations: true}).Save(z.parent(row)).Error
		},
		"Append": func(row *T) error {
			return db.Model(z.parent(new(T))).Association("Rows").Append(row)
		},
		"Touch":  func(row *T) error { return gormlock.Touch(db, row) },
		"Delete": func(row *T) error { return db.Delete(row).Error },
		"SaveMerged": func(row *T) error {
			return db.Transaction(func(tx *gorm.DB) error {
				base, mine := *row, *row
				fields, _ := z.fields(&base)
				fields.N = 0
				err := gormlock.SaveMerged(tx, &mine, &base)
				*row = mine
				return err
			})
		},
	}
}

// read is the row as another program reads it.
func (z zones[T]) read(t *testing.T, id int64) (T, time.Time) {
	t.Helper()
	row := stand.Row[T](t, z.db, id)
	_, at := z.fields(&row)
	return row, *at
}

func (z zones[T]) test(t *testing.T) {
	t.Helper()
	berlin, err := time.LoadLocation("Europe/Berlin")
	stand.Must(t, err)
	places := []*time.Location{time.UTC, time.Local, time.FixedZone("", 5*3600+1800), time.FixedZone("west", -8*3600), berlin}
	for of := range 2 {
		first := new(T)
		base, _ := z.fields(first)
		base.ParentID = int64(of)
		stand.Must(t, z.db.Create(z.parent(first)).Error)
	}
	id := int64(0)
	for way, write := range z.writes() {
		for _, in := range places {
			for _, rival := range []bool{false, true} {
				id++
				created := new(T)
				base, at := z.fields(created)
				base.ID, base.ParentID = id, 1
				stand.Must(t, z.db.Create(created).Error)
				row, was := z.read(t, id)
				if !was.Equal(*at) || time.Since(was).Abs() > time.Minute {
					t.Fatalf("created at %v, read as %v, and it is %v", *at, was, time.Now())
				}
				if id%2 > 0 {
					row = *created
				}
				base, at = z.fields(&row)
				*at, base.N = at.In(in), 8
				if rival {
					stand.Must(t, z.db.Model(new(T)).Where("id = ?", id).Update("n", 5).Error)
				}
				err := write(&row)
				if rival {
					if _, now := z.read(t, id); !now.After(was) || now.Sub(was) > time.Minute {
						t.Errorf("%s in %v: a rival moved the version from %v to %v", way, in, was, now)
					}
					if !errors.Is(err, gormlock.ErrStale) {
						t.Errorf("%s in %v, after a rival: %v", way, in, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s in %v: %v", way, in, err)
					continue
				}
				if way == "Delete" {
					continue
				}
				if _, now := z.read(t, id); !now.After(was) || now.Sub(was) > time.Minute {
					t.Errorf("%s in %v: the version went from %v to %v", way, in, was, now)
				}
				if !at.Equal(was) { // the write has moved it in memory too
					if err := z.db.Save(&row).Error; err != nil {
						t.Errorf("%s in %v, then Save: %v", way, in, err)
					}
				}
			}
		}
	}
}

func testZones(t *testing.T, db *gorm.DB) {
	t.Helper()
	zones[zonedRow]{
		db, func(row *zonedRow) (*ZonedBase, *time.Time) { return &row.ZonedBase, &row.Version },
		func(row *zonedRow) any {
			p := &zonedParent{ID: max(1, 2-row.ParentID)}
			if row.ID > 0 {
				p.Rows = []*zonedRow{row}
			}
			return p
		},
	}.test(t)
}

func testClocks(t *testing.T, db *gorm.DB) {
	t.Helper()
	zones[clockRow]{
		db, func(row *clockRow) (*ZonedBase, *time.Time) { return &row.ZonedBase, &row.Version },
		func(row *clockRow) any {
			p := &clockParent{ID: max(1, 2-row.ParentID)}
			if row.ID > 0 {
				p.Rows = []*clockRow{row}
			}
			return p
		},
	}.test(t)
}

// A version that is a time means an instant, in whatever zone the program or its client names it: the same is fresh, another is stale, and
// the next one is right.
func TestTimes_inAnotherZone(t *testing.T) {
	t.Parallel()
	models := []any{&zonedParent{}, &zonedRow{}, &clockParent{}, &clockRow{}}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		testZones(t, stand.OnSQLite(t, models[:2]))
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		db := mariaserver.Open(t, models)
		testZones(t, db)
		testClocks(t, db)
	})
	for name, opts := range map[string][]pgtest.Option{
		"postgres": nil, "simple protocol": {pgtest.SimpleProtocol()}, "read in another zone": {pgtest.Param("TimeZone", "EST5EDT")},
		"one connection": {pgtest.MaxConns(1)}, "simple protocol in another zone": {pgtest.SimpleProtocol(), pgtest.Param("TimeZone", "EST5EDT")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := stand.Versioned(t, models, opts...)
			testZones(t, db)
			testClocks(t, db)
		})
	}
}
