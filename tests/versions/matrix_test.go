package versions_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// cellRow is the model of the write-path matrix.
type cellRow struct {
	ID        int64
	Balance   int64
	Note      string
	Version   int64 `gormlock:"version"`
	DeletedAt gorm.DeletedAt
	Parts     []part `gorm:"foreignKey:CellRowID"`
}

type part struct {
	ID, CellRowID int64
}

type cellForm struct {
	Balance int64
}

// path is a way to write 90 into the balance of a cellRow, or to delete it.
type path struct {
	write   func(tx *gorm.DB, c *cellRow) error
	deletes bool // the row is deleted, softly or not
	hard    bool
	alone   bool // the struct is written without its parts
	copied  bool // the struct is handed over by value: memory stays
	bulk    bool // no struct is known: nothing is checked, the version moves
	blind   bool // nothing is known at all: the version stays
	exists  bool // an upsert: a struct without a version is a new one
	slice   bool // Save of a slice, which is an upsert inside
	anew    bool // a struct without a version is stored where there is no row
}

var paths = map[string]path{
	"Save": {anew: true, write: func(tx *gorm.DB, c *cellRow) error { c.Balance = 90; return tx.Save(c).Error }},
	"Save of a pointer to a pointer": {anew: true, write: func(tx *gorm.DB, c *cellRow) error {
		c.Balance = 90
		return tx.Save(&c).Error
	}},
	"Save of a slice": {slice: true, alone: true, anew: true, write: func(tx *gorm.DB, c *cellRow) error {
		s := []cellRow{*c}
		s[0].Balance, s[0].Parts = 90, nil
		err := tx.Save(&s).Error
		c.Version = s[0].Version
		return err
	}},
	"Save of a slice of pointers": {slice: true, alone: true, anew: true, write: func(tx *gorm.DB, c *cellRow) error {
		c.Balance, c.Parts = 90, nil
		return tx.Save([]*cellRow{c}).Error
	}},
	"Save, version omitted": {anew: true, write: func(tx *gorm.DB, c *cellRow) error {
		c.Balance = 90
		return tx.Omit("version").Save(c).Error
	}},
	"Updates, all selected": {write: func(tx *gorm.DB, c *cellRow) error {
		c.Balance, c.Parts = 90, nil
		return tx.Select("*").Updates(c).Error
	}, alone: true},
	"Update":          {write: func(tx *gorm.DB, c *cellRow) error { return tx.Model(c).Update("balance", 90).Error }},
	"Update by field": {write: func(tx *gorm.DB, c *cellRow) error { return tx.Model(c).Update("Balance", 90).Error }},
	"Update, expression": {write: func(tx *gorm.DB, c *cellRow) error {
		return tx.Model(c).Update("balance", gorm.Expr("balance - balance + 90")).Error
	}},
	"Update of a slice": {alone: true, write: func(tx *gorm.DB, c *cellRow) error {
		c.Parts = nil
		return tx.Model([]*cellRow{c}).Update("balance", 90).Error
	}},
	"Update of an array": {alone: true, write: func(tx *gorm.DB, c *cellRow) error {
		a := [1]cellRow{*c}
		a[0].Parts = nil
		err := tx.Model(&a).Update("balance", 90).Error
		*c = a[0]
		return err
	}},
	"Updates, struct": {write: func(tx *gorm.DB, c *cellRow) error { return tx.Model(c).Updates(cellRow{Balance: 90}).Error }},
	"Updates, itself": {write: func(tx *gorm.DB, c *cellRow) error { c.Balance = 90; return tx.Updates(c).Error }},
	"Updates, map": {write: func(tx *gorm.DB, c *cellRow) error {
		return tx.Model(c).Updates(map[string]any{"balance": 90}).Error
	}},
	"Updates, form": {write: func(tx *gorm.DB, c *cellRow) error { return tx.Model(c).Updates(cellForm{90}).Error }},
	"Updates, by value": {copied: true, alone: true, write: func(tx *gorm.DB, c *cellRow) error {
		return tx.Model(cellRow{ID: c.ID, Version: c.Version}).Updates(map[string]any{"balance": 90}).Error
	}},
	"UpdateColumn": {write: func(tx *gorm.DB, c *cellRow) error { return tx.Model(c).UpdateColumn("balance", 90).Error }},
	"UpdateColumns": {write: func(tx *gorm.DB, c *cellRow) error {
		return tx.Model(c).UpdateColumns(cellRow{Balance: 90}).Error
	}},
	"Select": {alone: true, write: func(tx *gorm.DB, c *cellRow) error {
		return tx.Model(c).Select("balance").Updates(cellRow{Balance: 90, Note: "never"}).Error
	}},
	"Omit": {write: func(tx *gorm.DB, c *cellRow) error {
		return tx.Model(c).Omit("note").Updates(cellRow{Balance: 90, Note: "never"}).Error
	}},
	"Omit, version": {write: func(tx *gorm.DB, c *cellRow) error {
		return tx.Model(c).Omit("version").Updates(cellRow{Balance: 90}).Error
	}},
	"Set clause": {write: func(tx *gorm.DB, c *cellRow) error {
		return tx.Model(c).Where("id = ?", c.ID).Clauses(clause.Set{{Column: clause.Column{Name: "balance"}, Value: 90}}).Updates(map[string]any{}).Error
	}},
	"RETURNING": {write: func(tx *gorm.DB, c *cellRow) error {
		return tx.Model(c).Clauses(clause.Returning{}).Update("balance", 90).Error
	}},
	"Upsert, all columns": {exists: true, alone: true, write: func(tx *gorm.DB, c *cellRow) error {
		c.Balance, c.Parts = 90, nil
		return tx.Clauses(stand.UpdateAll).Create(c).Error
	}},
	"Upsert, some columns": {exists: true, alone: true, write: func(tx *gorm.DB, c *cellRow) error {
		c.Balance, c.Parts = 90, nil
		return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"balance", "version"})}).Create(c).Error
	}},
	"FullSaveAssociations": {anew: true, write: func(tx *gorm.DB, c *cellRow) error {
		c.Balance = 90
		return tx.Session(&gorm.Session{FullSaveAssociations: true}).Save(c).Error
	}},
	"G.Updates": {copied: true, alone: true, write: func(tx *gorm.DB, c *cellRow) error {
		_, err := gorm.G[cellRow](tx).Updates(context.Background(), cellRow{ID: c.ID, Balance: 90, Version: c.Version})
		return err
	}},
	"Delete, soft":        {deletes: true, alone: true, write: func(tx *gorm.DB, c *cellRow) error { return tx.Delete(c).Error }},
	"Delete, soft, slice": {deletes: true, alone: true, write: func(tx *gorm.DB, c *cellRow) error { return tx.Delete([]*cellRow{c}).Error }},
	"Delete, hard":        {deletes: true, hard: true, alone: true, write: func(tx *gorm.DB, c *cellRow) error { return tx.Unscoped().Delete(c).Error }},
	"Delete, by model": {deletes: true, hard: true, alone: true, write: func(tx *gorm.DB, c *cellRow) error {
		return tx.Unscoped().Model(c).Delete(&cellRow{}).Error
	}},

	"bulk": {bulk: true, write: func(tx *gorm.DB, c *cellRow) error {
		return tx.Model(&cellRow{}).Where("id = ?", c.ID).Update("balance", 90).Error
	}},
	"bulk, no model struct": {bulk: true, write: func(tx *gorm.DB, c *cellRow) error {
		return tx.Model((*cellRow)(nil)).Where("id = ?", c.ID).Update("balance", 90).Error
	}},
	"global": {bulk: true, write: func(tx *gorm.DB, _ *cellRow) error {
		return tx.Session(&gorm.Session{AllowGlobalUpdate: true}).Model(&cellRow{}).Update("balance", 90).Error
	}},
	"G.Update": {bulk: true, write: func(tx *gorm.DB, c *cellRow) error {
		_, err := gorm.G[cellRow](tx).Where("id = ?", c.ID).Update(context.Background(), "balance", 90)
		return err
	}},
	"G.Set().Update": {bulk: true, write: func(tx *gorm.DB, c *cellRow) error {
		_, err := gorm.G[cellRow](tx).Where("id = ?", c.ID).Set(clause.Assignment{Column: clause.Column{Name: "balance"}, Value: 90}).Update(context.Background())
		return err
	}},
	"Delete by key": {bulk: true, deletes: true, write: func(tx *gorm.DB, c *cellRow) error { return tx.Delete(&cellRow{}, c.ID).Error }},
	"G.Delete": {bulk: true, deletes: true, write: func(tx *gorm.DB, c *cellRow) error {
		_, err := gorm.G[cellRow](tx).Where("id = ?", c.ID).Delete(context.Background())
		return err
	}},
	"IgnoreVersion": {bulk: true, write: func(tx *gorm.DB, c *cellRow) error {
		return tx.Model(&cellRow{ID: c.ID}).Clauses(gormlock.IgnoreVersion()).Update("balance", 90).Error
	}},
	"Table": {blind: true, write: func(tx *gorm.DB, c *cellRow) error {
		return tx.Table("cell_rows").Where("id = ?", c.ID).Updates(map[string]any{"balance": 90}).Error
	}},
	"Exec": {blind: true, write: func(tx *gorm.DB, c *cellRow) error {
		return tx.Exec("UPDATE cell_rows SET balance = 90 WHERE id = ?", c.ID).Error
	}},
}

// TestMatrix states for every write path, state of the struct and kind of transaction what happens to row, version,
// error, struct and children (G5 to G12, W7, W8).
func TestMatrix(t *testing.T) {
	t.Parallel()
	for dialect, open := range map[string]func(t testing.TB) *gorm.DB{
		"postgres": func(t testing.TB) *gorm.DB { return stand.Versioned(t, []any{&cellRow{}, &part{}}) },
		"prepared": func(t testing.TB) *gorm.DB {
			return stand.Versioned(t, []any{&cellRow{}, &part{}}, pgtest.PrepareStmt())
		},
		"simple": func(t testing.TB) *gorm.DB {
			return stand.Versioned(t, []any{&cellRow{}, &part{}}, pgtest.SimpleProtocol())
		},
		"config": func(t testing.TB) *gorm.DB {
			return stand.Versioned(t, []any{&cellRow{}, &part{}}, pgtest.SkipDefaultTransaction())
		},
		"sqlite":             func(t testing.TB) *gorm.DB { return stand.OnSQLite(t, []any{&cellRow{}, &part{}}) },
		"mariadb":            func(t testing.TB) *gorm.DB { return mariaserver.Open(t, []any{&cellRow{}, &part{}}) },
		"mariadb like MySQL": func(t testing.TB) *gorm.DB { return mariaserver.Open(t, []any{&cellRow{}, &part{}}, stand.LikeMySQL) },
	} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			for pathName, p := range paths {
				for txName, transaction := range stand.Begin {
					if strings.HasPrefix(dialect, "mariadb") && pathName == "RETURNING" && txName == "none" {
						continue // it cannot be read again behind the update: the server refuses the statement
					}
					for _, state := range []string{"fresh", "stale", "gone", "null", "unloaded", "absent"} {
						t.Run(fmt.Sprintf("%s/%s/%s", pathName, txName, state), func(t *testing.T) {
							matrix(t, db, p, transaction, state)
						})
					}
				}
			}
		})
	}
}

func matrix(t *testing.T, db *gorm.DB, p path, transaction func(*gorm.DB, func(*gorm.DB) error) error, state string) {
	stand.Must(t, db.Exec("DELETE FROM parts").Error)
	stand.Must(t, db.Exec("DELETE FROM cell_rows").Error)
	c := stand.Made(t, db, cellRow{Balance: 100, Version: 3})
	want := stand.Row[cellRow](t, db, c.ID)
	switch state {
	case "stale":
		stand.Must(t, db.Exec("UPDATE cell_rows SET version = 5, balance = 55").Error)
	case "gone":
		stand.Must(t, db.Exec("DELETE FROM cell_rows").Error)
	case "absent":
		stand.Must(t, db.Exec("DELETE FROM cell_rows").Error)
		c.Version = 0
	case "null":
		stand.Must(t, db.Exec("UPDATE cell_rows SET version = NULL").Error)
		c.Version = 0
	case "unloaded":
		c.Version = 0
	}
	if !p.alone {
		c.Parts = []part{{}}
	}
	held := c.Version
	err := transaction(db, func(tx *gorm.DB) error { return p.write(tx, &c) })

	checked := !p.bulk && !p.blind
	writes, moved := true, int64(1)
	switch {
	case state == "gone" && checked && p.exists:
		stand.MustStale(t, err)
		writes = false
	case state == "gone" && checked:
		if e := stand.MustBeStale(t, err); !e.Deleted {
			t.Error("not deleted", e)
		}
		writes = false
	case state == "absent" && (p.anew || p.exists):
		stand.Must(t, err)
		want.Version, moved = 0, 1
	case state == "absent" && checked:
		stand.MustStale(t, err)
		writes = false
	case state == "gone", state == "absent":
		stand.Must(t, err)
		writes = false
	case state == "stale" && checked:
		e := stand.MustBeStale(t, err)
		stand.Equal[any](t, "expected", e.Expected, int64(3))
		stand.Equal[any](t, "actual", e.Actual, int64(5))
		stand.Equal[any](t, "key", e.PrimaryKey["id"], c.ID)
		writes = false
		want.Version, want.Balance = 5, 55
	case state == "unloaded" && checked && !p.exists:
		if !errors.Is(err, gormlock.ErrVersionMissing) {
			t.Error("want a missing version, got", err)
		}
		writes = false
	default:
		stand.Must(t, err)
	}
	if state == "null" {
		want.Version = 0
	}
	if state == "stale" {
		want.Version = 5
	}
	if p.blind {
		moved = 0
	}
	if state == "null" && (p.exists || p.slice) {
		moved = 2 // never the first version, which means inserted
	}

	var rows []cellRow
	stand.Must(t, db.Unscoped().Find(&rows).Error)
	switch {
	case state == "gone", state == "absent" && !writes, writes && p.hard:
		stand.Equal(t, "rows", len(rows), 0)
	case len(rows) != 1:
		t.Fatal("rows", rows)
	case writes && p.deletes:
		stand.Equal(t, "deleted", rows[0].DeletedAt.Valid, true)
		stand.Equal(t, "version", rows[0].Version, want.Version+moved)
	case writes:
		stand.Equal(t, "balance", rows[0].Balance, 90)
		stand.Equal(t, "version", rows[0].Version, want.Version+moved)
	default:
		stand.Equal(t, "balance", rows[0].Balance, want.Balance)
		stand.Equal(t, "version", rows[0].Version, want.Version)
		stand.Equal(t, "deleted", rows[0].DeletedAt.Valid, false)
	}
	switch {
	case !writes, p.copied, p.bulk, p.blind, p.hard:
		stand.Equal(t, "version in memory", c.Version, held)
		stand.Equal(t, "deleted in memory", c.DeletedAt.Valid, false)
	case p.exists && (state == "unloaded" || state == "null" || state == "absent"):
	default:
		stand.Equal(t, "version in memory", c.Version, rows[0].Version)
	}
	var parts int64
	stand.Must(t, db.Model(&part{}).Count(&parts).Error)
	children := int64(0)
	if writes && checked && !p.alone {
		children = 1
	}
	stand.Equal(t, "children", parts, children)
}
