package rollbacks_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// gauge is a model whose table has other names too.
type gauge struct {
	ID      int64
	Place   string
	Value   int
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

const (
	gaugeTable = "CREATE TABLE gauges (id bigserial PRIMARY KEY, place text, value int, version bigint NOT NULL DEFAULT 1)"
	gaugeParts = gaugeTable + " PARTITION BY RANGE (id); "
)

// otherNames are names for the rows of gauges. The server does not say of all that they are the same: a struct then counts as not read.
var otherNames = map[string]struct {
	tables, other string
	exact         bool
}{
	"the table":                  {gaugeTable, "gauges", true},
	"a partition":                {gaugeParts + "CREATE TABLE gauges_1 PARTITION OF gauges FOR VALUES FROM (0) TO (100)", "gauges_1", false},
	"a partition of a partition": {gaugeParts + "CREATE TABLE gauges_0 PARTITION OF gauges DEFAULT PARTITION BY RANGE (id); CREATE TABLE gauges_1 PARTITION OF gauges_0 DEFAULT", "gauges_1", false},
	"a table that inherits":      {gaugeTable + "; CREATE TABLE gauges_1 (PRIMARY KEY (id)) INHERITS (gauges)", "gauges_1", false},
	"a view":                     {gaugeTable + "; CREATE VIEW gauges_1 AS SELECT * FROM gauges WHERE id < 100", "gauges_1", false},
	"a view of a view":           {gaugeTable + "; CREATE VIEW gauges_0 AS SELECT * FROM gauges; CREATE VIEW gauges_1 AS SELECT * FROM gauges_0", "gauges_1 AS g", false},
	"a view in another schema":   {gaugeTable + "; DROP SCHEMA IF EXISTS lookout CASCADE; CREATE SCHEMA lookout; CREATE VIEW lookout.gauges AS SELECT * FROM gauges", "lookout.gauges", false},
	"its schema":                 {gaugeTable, "SCHEMA.gauges", true},
	"its schema, in other letters": {
		gaugeTable, "SCHEMA.Gauges AS g", true,
	},
	"its database":       {gaugeTable, "DATABASE.SCHEMA.gauges", false},
	"large letters":      {gaugeTable, "GAUGES AS g", true},
	"an alias":           {gaugeTable, "Gauges g", true},
	"quotes":             {gaugeTable, `"gauges" AS g`, true},
	"ONLY":               {gaugeTable, "ONLY gauges", true},
	"only, and an alias": {gaugeTable, "only gauges AS g", true},
	"blanks":             {gaugeTable, "  gauges", true},
	"an argument":        {gaugeTable, "?", false},
}

// gaugeNames begin a statement by the first name, or by the other one.
func gaugeNames(t *testing.T, db *gorm.DB, other string) [2]func(tx *gorm.DB) *gorm.DB {
	t.Helper()
	var schema, database string
	stand.MustDo(t, db.Raw("SELECT current_schema()").Scan(&schema))
	stand.MustDo(t, db.Raw("SELECT current_database()").Scan(&database))
	other = strings.NewReplacer("SCHEMA", schema, "DATABASE", database).Replace(other)
	return [2]func(tx *gorm.DB) *gorm.DB{
		func(tx *gorm.DB) *gorm.DB { return tx },
		func(tx *gorm.DB) *gorm.DB {
			if other == "?" {
				return tx.Table("?", clause.Table{Name: "gauges"})
			}
			return tx.Table(other)
		},
	}
}

var gaugeWrites = map[string]func(in *gorm.DB, g *gauge) error{
	"save":   func(in *gorm.DB, g *gauge) error { g.Value++; return in.Save(g).Error },
	"update": func(in *gorm.DB, g *gauge) error { return in.Model(g).Update("place", "moved").Error },
	"slice":  func(in *gorm.DB, g *gauge) error { g.Value += 10; return in.Save([]*gauge{g}).Error },
	"updates": func(in *gorm.DB, g *gauge) error {
		return in.Model(g).Updates(map[string]any{"value": 5}).Error
	},
}

// A transaction writes rows of a list by one name of their table, sorts the list, and writes by another name. What is rolled back leaves no
// struct with a version that was never committed: another writer may reach it.
func TestRollback_ofATableWithOtherNames(t *testing.T) {
	t.Parallel()
	for what, names := range otherNames {
		for writes, write := range gaugeWrites {
			if writes == "slice" && (what == "a table that inherits" || names.other == "?" || strings.Contains(strings.ToLower(names.other), "only ") || names.other == "Gauges g") {
				continue // PostgreSQL has no such INSERT
			}
			t.Run(what+", "+writes, func(t *testing.T) {
				db := stand.Open(t)
				stand.Must(t, db.Exec(names.tables).Error)
				by := gaugeNames(t, db, names.other)
				for n := range 3 * 2 * 3 * 2 {
					second, otherFirst, readBy, savepoint := n%3, n/3%2, n/6%3, n/18 == 1
					if second == 0 || readBy > 0 { // no rollback finds a struct in a place that the transaction has not met
						tryNames(t, db, nameTry{by, write, second, otherFirst, readBy, savepoint, names.exact})
					}
				}
			})
		}
	}
}

// nameTry is one way to write rows by two names.
type nameTry struct {
	by         [2]func(tx *gorm.DB) *gorm.DB
	write      func(in *gorm.DB, g *gauge) error
	second     int // the row that is written by the second name, in the list as it is then
	otherFirst int
	readBy     int  // 0: the list was there before; else it is read in the transaction, by the first name or by the other one
	savepoint  bool // only a part of the transaction is rolled back
	exact      bool
}

func tryNames(t *testing.T, db *gorm.DB, try nameTry) {
	t.Helper()
	stand.Must(t, db.Exec("DELETE FROM gauges").Error)
	list := []gauge{{ID: 1, Place: "a"}, {ID: 2, Place: "b"}, {ID: 3, Place: "c"}}
	where := db
	if try.by[1](db).Statement.TableExpr.SQL == `"gauges_1"` {
		where = try.by[1](db)
	}
	stand.MustDo(t, where.Create(&list))
	body := func(tx *gorm.DB) error {
		if try.readBy > 0 {
			stand.MustDo(t, try.by[try.readBy-1](tx).Order("id").Find(&list))
		}
		stand.Must(t, try.write(try.by[try.otherFirst](tx), &list[2]))
		slices.Reverse(list)
		stand.Must(t, try.write(try.by[1-try.otherFirst](tx), &list[try.second]))
		return errUndo
	}
	err := db.Transaction(func(tx *gorm.DB) error {
		if try.savepoint {
			return ignore(tx.Transaction(body))
		}
		return body(tx)
	})
	stand.Must(t, ignore(err))
	for _, g := range list {
		if g.Version != 1 && (try.exact || g.Version != stand.Unread) {
			t.Errorf("%+v: after the rollback: %+v", try, g)
		}
	}
	stand.MustDo(t, db.Exec("UPDATE gauges SET value = 1000, version = version + 1"))
	for i := range list {
		if err := db.Save(&list[i]).Error; !errors.Is(err, gormlock.ErrStale) && !errors.Is(err, gormlock.ErrVersionMissing) {
			t.Errorf("%+v: %+v has overwritten another writer's row: %v", try, list[i], err)
		}
	}
}

// GORM copies children within an association, and the copies have the name of their own table.
func TestRollback_ofACopiedChildWithOtherNames(t *testing.T) {
	t.Parallel()
	for what, names := range otherNames {
		for doing, copies := range map[string]func(tx *gorm.DB, d *dial) error{
			"append": func(tx *gorm.DB, d *dial) error {
				return tx.Model(d).Association("Gauges").Append(&dialGauge{Place: "new"})
			},
			"delete":  func(tx *gorm.DB, d *dial) error { return tx.Model(d).Association("Gauges").Delete(&d.Gauges[1]) },
			"replace": func(tx *gorm.DB, d *dial) error { return tx.Model(d).Association("Gauges").Replace(&d.Gauges[0]) },
		} {
			if what == "a table that inherits" {
				continue // Append stores in the table of the model
			}
			t.Run(what+", "+doing, func(t *testing.T) {
				db := stand.Versioned(t, []any{&dial{}})
				stand.Must(t, db.Exec("DROP TABLE IF EXISTS gauges").Error)
				stand.Must(t, db.Exec(strings.Replace(names.tables, "place text", "dial_id bigint, place text", 1)).Error)
				by := gaugeNames(t, db, names.other)
				d := dial{Gauges: []dialGauge{{Place: "one"}, {Place: "two"}}}
				stand.MustDo(t, db.Create(&d))
				first := d.Gauges[0].ID
				_ = db.Transaction(func(tx *gorm.DB) error {
					d.Gauges[0].Place = "mine"
					stand.MustDo(t, by[1](tx).Save(&d.Gauges[0]))
					stand.Must(t, copies(tx, &d))
					return errUndo
				})
				stand.MustDo(t, db.Exec("UPDATE gauges SET place = 'rival', version = version + 1"))
				for i := range d.Gauges {
					if d.Gauges[i].ID != first {
						continue
					}
					if v := d.Gauges[i].Version; v > 1 {
						t.Errorf("after the rollback it has version %d", v)
					}
					if db.Save(&d.Gauges[i]).Error == nil {
						t.Error("the rival's row was overwritten")
					}
				}
			})
		}
	}
}

type dial struct {
	ID      int64
	Gauges  []dialGauge `gorm:"foreignKey:DialID"`
	Version int64       `gorm:"not null;default:1" gormlock:"version"`
}

type dialGauge struct {
	ID      int64
	DialID  int64
	Place   string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

func (dialGauge) TableName() string { return "gauges" }

// An attempt that failed is repeated with structs that no version was left in which only it has seen.
func TestAttempts_ofATableWithOtherNames(t *testing.T) {
	t.Parallel()
	for what, names := range otherNames {
		t.Run(what, func(t *testing.T) {
			db := stand.Open(t)
			stand.Must(t, db.Exec(names.tables).Error)
			by := gaugeNames(t, db, names.other)
			list := []gauge{{ID: 1}, {ID: 2}, {ID: 3}}
			if names.other == "gauges_1" {
				stand.MustDo(t, db.Table("gauges_1").Create(&list))
			} else {
				stand.MustDo(t, db.Create(&list))
			}
			attempts := 0
			err := gormlock.Transaction(db, func(tx *gorm.DB) error {
				if attempts++; attempts == 2 {
					stand.MustDo(t, db.Exec("UPDATE gauges SET value = 1000, version = version + 1 WHERE id = 3"))
				}
				i := slices.IndexFunc(list, func(g gauge) bool { return g.ID == 3 })
				list[i].Value++
				if err := tx.Save(&list[i]).Error; err != nil {
					return err
				}
				slices.SortFunc(list, func(a, b gauge) int { return b.Value - a.Value })
				if err := by[1](tx).Model(&list[0]).Update("place", "top").Error; err != nil {
					return err
				}
				if attempts == 1 {
					return tx.Exec("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$").Error
				}
				return nil
			}, gormlock.Attempts(2))
			stand.Equal(t, "conflict", errors.Is(err, gormlock.ErrStale) || errors.Is(err, gormlock.ErrVersionMissing), true)
			stand.Equal(t, "value", stand.Row[gauge](t, db, 3).Value, 1000)
		})
	}
}

// What the transaction has itself renamed, nobody compares by name.
func TestRollback_ofRenamedTables(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.Must(t, db.Exec(gaugeTable+"; CREATE TABLE spares (LIKE gauges INCLUDING ALL)").Error)
	list := []gauge{{ID: 1}, {ID: 2}, {ID: 3}}
	stand.MustDo(t, db.Table("spares").Create(&list))
	stand.MustDo(t, db.Create([]gauge{{ID: 1}, {ID: 2}, {ID: 3}}))
	_ = db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Model(&gauge{ID: 2, Version: 1}).Update("place", "known")) // both names are known
		stand.MustDo(t, tx.Table("spares").Model(&list[2]).Update("place", "moved"))
		stand.MustDo(t, tx.Exec("ALTER TABLE gauges RENAME TO gauges_0; ALTER TABLE spares RENAME TO gauges; ALTER TABLE gauges_0 RENAME TO spares"))
		slices.Reverse(list)
		stand.MustDo(t, tx.Model(&list[0]).Update("place", "again"))
		return errUndo
	})
	for _, g := range list {
		if g.Version > 1 {
			t.Errorf("after the rollback: %+v", g)
		}
	}
}

// A view that the transaction has itself replaced by a table had rows of the table before.
func TestRollback_ofAViewThatBecameATable(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	stand.Must(t, db.Exec(gaugeTable+"; CREATE VIEW gauges_1 AS SELECT * FROM gauges").Error)
	stand.MustDo(t, db.Create(&[]gauge{{ID: 1}, {ID: 2}, {ID: 3}}))
	var list []gauge
	_ = db.Transaction(func(tx *gorm.DB) error {
		stand.MustDo(t, tx.Table("gauges_1").Order("id").Find(&list))
		stand.MustDo(t, tx.Model(&list[2]).Update("place", "moved"))
		stand.MustDo(t, tx.Exec("DROP VIEW gauges_1; CREATE TABLE gauges_1 (LIKE gauges INCLUDING ALL); INSERT INTO gauges_1 SELECT * FROM gauges"))
		stand.MustDo(t, tx.Table("gauges_1").Model(&list[0]).Update("place", "moved too"))
		slices.Reverse(list)
		return errUndo
	})
	for _, g := range list {
		if g.Version > 1 {
			t.Errorf("after the rollback: %+v", g)
		}
	}
}

// What a name stands for is asked in each transaction: another connection may have a temporary table by it, and another program may make the
// table a part of the other one, or a view of it.
func TestRollback_ofNamesThatChange(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]string{
		"a temporary table of another connection": "",
		"a table that inherits":                   "DELETE FROM gauges_1; ALTER TABLE gauges_1 INHERIT gauges; INSERT INTO gauges_1 SELECT * FROM gauges; DELETE FROM ONLY gauges",
		"a view":                                  "DROP TABLE gauges_1; CREATE VIEW gauges_1 AS SELECT * FROM gauges",
		"a view in the place of the first":        "DROP TABLE gauges_1; ALTER TABLE gauges RENAME TO gauges_1; CREATE VIEW gauges AS SELECT * FROM gauges_1",
		"a partition": "DROP TABLE gauges_1; ALTER TABLE gauges RENAME TO gauges_1; CREATE TABLE gauges (LIKE gauges_1 INCLUDING DEFAULTS) PARTITION BY RANGE (id); " +
			"ALTER TABLE gauges ATTACH PARTITION gauges_1 FOR VALUES FROM (0) TO (100)",
	} {
		t.Run(what, func(t *testing.T) {
			db := stand.Open(t, pgtest.MaxConns(2))
			var schema string
			stand.MustDo(t, db.Raw("SELECT current_schema()").Scan(&schema))
			elsewhere := pgtest.Open(t, pgtest.Param("search_path", schema))
			stand.Must(t, db.Exec(gaugeTable+"; CREATE TABLE gauges_1 (LIKE gauges INCLUDING ALL)").Error)
			by := gaugeNames(t, db, "gauges_1")
			if change == "" {
				by = gaugeNames(t, db, "SCHEMA.gauges")
			}
			stand.MustDo(t, db.Create(&[]gauge{{ID: 1}, {ID: 2}, {ID: 3}}))
			stand.MustDo(t, db.Table("gauges_1").Create(&[]gauge{{ID: 1}, {ID: 2}, {ID: 3}}))
			first := db.Begin()
			if change == "" {
				stand.MustDo(t, first.Exec("CREATE TEMP TABLE gauges (LIKE gauges INCLUDING ALL)"))
				stand.MustDo(t, first.Exec("INSERT INTO gauges SELECT * FROM gauges_1"))
				stand.MustDo(t, first.Commit())
				first = db.Begin()
			}
			stand.MustDo(t, by[0](first).Model(&gauge{ID: 1, Version: 1}).Update("place", "x"))
			stand.MustDo(t, by[1](first).Model(&gauge{ID: 2, Version: 1}).Update("place", "x"))
			second := first
			if change == "" {
				second = db.Begin() // the other connection
			}
			stand.MustDo(t, first.Rollback())
			if change != "" {
				stand.MustDo(t, elsewhere.Exec(change))
				second = db.Begin()
			}
			var list []gauge
			stand.MustDo(t, elsewhere.Order("id").Find(&list))
			stand.MustDo(t, by[0](second).Model(&list[2]).Update("place", "moved"))
			slices.Reverse(list)
			stand.MustDo(t, by[1](second).Model(&list[0]).Update("place", "moved too"))
			stand.MustDo(t, second.Rollback())
			for _, g := range list {
				if g.Version > 1 {
					t.Errorf("after the rollback: %+v", g)
				}
			}
		})
	}
}
