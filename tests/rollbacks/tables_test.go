package rollbacks_test

import (
	"errors"
	"fmt"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// cargo is a model whose rows lie in two tables: of two shards, two tenants, or of the present and the past.
type cargo struct {
	ID      int64
	State   string
	Weight  int64
	Crates  []crate
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

type crate struct {
	ID      int64
	CargoID int64
	Name    string
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// twoTables are two tables of cargos, in the schemas east and west, or in one schema. The ids of the second one begin at first.
type twoTables struct {
	t     *testing.T
	db    *gorm.DB
	named string // how a statement says which it means
	first int64  // id in the west
}

const (
	byPath   = "by the search path"
	bySchema = "with the schema"
	byName   = "by another name"
	byScope  = "by a name that a scope sets"
)

var coasts = [2]string{"east", "west"}

func (two twoTables) in(t *testing.T, tx *gorm.DB, at int) *gorm.DB {
	switch {
	case two.named == bySchema:
		return tx.Table(coasts[at] + ".cargos")
	case two.named == byPath:
		stand.Must(t, tx.Exec("SET LOCAL search_path TO "+coasts[at]).Error)
	case at == 1 && two.named == byScope:
		return tx.Scopes(func(tx *gorm.DB) *gorm.DB { tx.Statement.Table = "cargos_west"; return tx })
	case at == 1:
		return tx.Table("cargos_west")
	}
	return tx
}

// table is the table in full.
func (two twoTables) table(at int) string {
	if two.named == byName || two.named == byScope {
		return [2]string{"cargos", "cargos_west"}[at]
	}
	return coasts[at] + ".cargos"
}

func (two twoTables) begin(t *testing.T) (structs [2]cargo) {
	for at, schema := range coasts {
		stand.Must(t, two.db.Exec("TRUNCATE "+two.table(at)+", "+schema+".crates RESTART IDENTITY CASCADE").Error)
		if at == 1 {
			stand.Must(t, two.db.Exec("SELECT setval(pg_get_serial_sequence(?, 'id'), ?, false), setval(pg_get_serial_sequence('west.crates', 'id'), ?, false)", two.table(at), two.first, two.first).Error)
		}
		structs[at] = cargo{State: "new in the " + schema, Weight: int64(10 + at)}
		stand.Must(t, two.db.Transaction(func(tx *gorm.DB) error { return two.in(t, tx, at).Create(&structs[at]).Error }))
	}
	return structs
}

// waysToWrite are what one of the structs may see.
var waysToWrite = map[string]func(in *gorm.DB, p *cargo) error{
	"create":  func(in *gorm.DB, p *cargo) error { *p = cargo{State: "made"}; return in.Create(p).Error },
	"update":  func(in *gorm.DB, p *cargo) error { return in.Model(p).Update("state", "paid").Error },
	"updates": func(in *gorm.DB, p *cargo) error { return in.Model(p).Updates(cargo{Weight: p.Weight + 5}).Error },
	"save":    func(in *gorm.DB, p *cargo) error { p.State = "saved"; return in.Save(p).Error },
	"slice":   func(in *gorm.DB, p *cargo) error { p.State = "sliced"; return in.Save([]*cargo{p}).Error },
	"upsert": func(in *gorm.DB, p *cargo) error {
		p.State = "upserted"
		return in.Clauses(clause.OnConflict{UpdateAll: true}).Create(p).Error
	},
	"read":   func(in *gorm.DB, p *cargo) error { return in.First(p, p.ID).Error },
	"delete": func(in *gorm.DB, p *cargo) error { return in.Delete(p).Error },
	"items": func(in *gorm.DB, p *cargo) error {
		p.Crates = append(p.Crates, crate{Name: "thing"})
		return in.Save(p).Error
	},
}

var waysToEnd = map[string]func(two twoTables, write func(tx *gorm.DB, at int) error) error{
	"rolled back": func(two twoTables, write func(tx *gorm.DB, at int) error) error {
		return two.db.Transaction(func(tx *gorm.DB) error { return errors.Join(write(tx, 0), write(tx, 1), errUndo) })
	},
	"the first": func(two twoTables, write func(tx *gorm.DB, at int) error) error {
		return two.db.Transaction(func(tx *gorm.DB) error {
			err := tx.Transaction(func(tx *gorm.DB) error { return errors.Join(write(tx, 0), errUndo) })
			return errors.Join(write(tx, 1), ignore(err))
		})
	},
	"the second": func(two twoTables, write func(tx *gorm.DB, at int) error) error {
		return two.db.Transaction(func(tx *gorm.DB) error {
			first := write(tx, 0)
			return errors.Join(first, ignore(tx.Transaction(func(tx *gorm.DB) error { return errors.Join(write(tx, 1), errUndo) })))
		})
	},
	"again": func(two twoTables, write func(tx *gorm.DB, at int) error) error {
		attempts := 0
		return gormlock.Transaction(two.db, func(tx *gorm.DB) error {
			if attempts++; attempts == 1 {
				stand.Must(two.t, errors.Join(write(tx, 0), write(tx, 1)))
				return tx.Exec("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$").Error
			}
			return errors.Join(write(tx, 0), write(tx, 1))
		}, gormlock.Attempts(2))
	},
}

// ignore leaves out that a transaction was to be rolled back.
func ignore(err error) error {
	if errors.Is(err, errUndo) {
		return nil
	}
	return err
}

// Two structs of one type, key and version are not one row, if they are in two tables. So all that happens to them is what happens to two
// structs with other keys.
func TestRollback_rowsOfTwoTables(t *testing.T) {
	t.Parallel()
	db := stand.Open(t)
	for _, schema := range coasts {
		stand.Must(t, db.Exec("DROP SCHEMA IF EXISTS "+schema+" CASCADE; CREATE SCHEMA "+schema).Error)
		stand.Must(t, db.Connection(func(tx *gorm.DB) error {
			tx = tx.Session(&gorm.Session{NewDB: true})
			return errors.Join(tx.Exec("SET search_path TO "+schema).Error, tx.AutoMigrate(&cargo{}, &crate{}), tx.Exec("RESET search_path").Error)
		}))
	}
	stand.Must(t, db.AutoMigrate(&cargo{}, &crate{}))
	stand.Must(t, db.Exec("CREATE TABLE cargos_west (id bigserial PRIMARY KEY, state text, weight bigint, version bigint NOT NULL DEFAULT 1)").Error)
	const far = 1000
	for _, named := range []string{bySchema, byPath, byName, byScope} {
		for firstWay, first := range waysToWrite {
			for secondWay, second := range waysToWrite {
				if named != byPath && (firstWay == "items" || secondWay == "items") {
					continue // GORM stores them in the table of their own model
				}
				for ending, end := range waysToEnd {
					what := fmt.Sprintf("%s, %s and %s, %s", named, firstWay, secondWay, ending)
					run := func(from int64) string {
						two := twoTables{t, db, named, from}
						structs := two.begin(t)
						err := end(two, func(tx *gorm.DB, at int) error {
							way := first
							if at == 1 {
								way = second
							}
							return way(two.in(t, tx, at), &structs[at])
						})
						return two.seen(t, structs[:], err)
					}
					if same, apart := run(1), run(1+far); same != apart {
						t.Errorf("%s:\n%s\nwith other ids:\n%s", what, same, apart)
					}
				}
			}
		}
	}
}

// seen is what became of the structs and their rows, and what their next writes do, without where the ids of the second table begin.
func (two twoTables) seen(t *testing.T, structs []cargo, err error) string {
	off := func(at int, id int64) int64 {
		if at == 1 && id != 0 {
			return id - two.first + 1
		}
		return id
	}
	text := fmt.Sprintln(errors.Is(err, errUndo), ignore(err))
	for at := range structs {
		p := &structs[at]
		text += fmt.Sprintln(coasts[at], off(at, p.ID), p.State, p.Weight, p.Version)
		for _, item := range p.Crates {
			text += fmt.Sprintln("item", off(at, item.ID), off(at, item.CargoID), item.Name, item.Version)
		}
		p.State = "later"
		err := two.db.Transaction(func(tx *gorm.DB) error { return two.in(t, tx, at).Save(p).Error })
		text += fmt.Sprintln("saved", errors.Is(err, gormlock.ErrVersionMissing), errors.Is(err, gormlock.ErrStale), err == nil)
	}
	for at, schema := range coasts {
		var rows []cargo
		stand.Must(t, two.db.Raw("SELECT * FROM "+two.table(at)+" ORDER BY id").Scan(&rows).Error)
		for _, row := range rows {
			text += fmt.Sprintln("row", off(at, row.ID), row.State, row.Weight, row.Version)
		}
		var items []crate
		stand.Must(t, two.db.Raw("SELECT * FROM "+schema+".crates ORDER BY id").Scan(&items).Error)
		for _, item := range items {
			text += fmt.Sprintln("row of an item", off(at, item.ID), off(at, item.CargoID), item.Name, item.Version)
		}
	}
	return text
}
