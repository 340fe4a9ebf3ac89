package fences_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// TestFenceDoors: a token goes through every door that GORM has for clauses.
func TestFenceDoors(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&report{}, &reportNote{}})
	ctx := context.Background()
	token := stand.Issue(t, db, "report", 1)
	r := report{}
	stand.Must(t, db.Clauses(gormlock.Fence(token)).Create(&r).Error)
	guard := gormlock.Fence(token) // one value for all of them
	for _, late := range []bool{false, true} {
		if late {
			stand.Issue(t, db, "report", 1)
		}
		for name, write := range map[string]func() error{
			"Clauses": func() error { return db.Clauses(guard).Model(&r).Update("body", "x").Error },
			"a session": func() error {
				session := db.Clauses(guard).Session(&gorm.Session{})
				err := session.Model(&r).Update("body", "x").Error
				if err == nil {
					err = session.Model(&report{}).Where("1=1").Update("body", "y").Error
				}
				return err
			},
			"Scopes": func() error {
				return db.Scopes(func(db *gorm.DB) *gorm.DB { return db.Clauses(guard) }).Model(&r).Update("body", "x").Error
			},
			"G": func() error {
				_, err := gorm.G[report](db, guard).Where("id = ?", r.ID).Update(ctx, "body", "x")
				return err
			},
			"G.Updates": func() error {
				_, err := gorm.G[report](db, guard).Updates(ctx, report{ID: r.ID, Body: "x"})
				return err
			},
			"G.Create": func() error { return gorm.G[report](db, guard).Create(ctx, &report{}) },
			"G.CreateInBatches": func() error {
				return gorm.G[report](db, guard).CreateInBatches(ctx, &[]report{{}, {}, {}}, 2)
			},
			"G.Scopes": func() error {
				_, err := gorm.G[report](db).Where("id = ?", r.ID).Scopes(guard.ModifyStatement).Update(ctx, "body", "x")
				return err
			},
			"G, context": func() error {
				_, err := gorm.G[report](db).Where("id = ?", r.ID).Update(stand.With(db, token).Statement.Context, "body", "x")
				return err
			},
			"a transaction": func() error {
				return db.Clauses(guard).Transaction(func(tx *gorm.DB) error { return tx.Clauses(guard).Save(&r).Error })
			},
		} {
			err := write()
			if late {
				mustFenced(t, err)
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

type (
	stampedReport struct {
		ID      int64
		Body    string
		Fence   int64     `gormlock:"fence,key=report"`
		Version time.Time `gormlock:"version"`
	}
	xminReport struct {
		ID      int64
		Body    string
		Fence   int64  `gormlock:"fence,key=report"`
		Version uint32 `gorm:"column:xmin;->;-:migration" gormlock:"version,xmin"`
	}
	defaultReport struct {
		ID    int64
		Body  string
		Fence sql.NullInt64 `gorm:"column:guard;not null;default:0" gormlock:"fence,key=report"`
	}
	FenceBase struct {
		Guard *int64 `gormlock:"fence,key=report"`
	}
	embeddedReport struct {
		Code string `gorm:"primaryKey"`
		Body string
		*FenceBase
	}
	pairReport struct {
		A     int64 `gorm:"primaryKey;autoIncrement:false"`
		B     int64 `gorm:"primaryKey;autoIncrement:false"`
		Body  string
		Fence int64 `gormlock:"fence,key=report"`
	}
	placedReport struct {
		ID    int64
		Body  string
		Fence int64 `gormlock:"fence,key=report"`
	}
)

func (placedReport) TableName() string { return "archive.placed_reports" }

// Whatever the field is like, wherever the table is, and beside whatever version.
func TestFenceShapes(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&stampedReport{}, &xminReport{}, &defaultReport{}, &embeddedReport{}, &pairReport{}})
	fenceShape(t, db, &stampedReport{Body: "a"}, func(r *stampedReport) int64 { return r.Fence })
	fenceShape(t, db, &xminReport{Body: "a"}, func(r *xminReport) int64 { return r.Fence })
	fenceShape(t, db, &defaultReport{Body: "a"}, func(r *defaultReport) int64 { return r.Fence.Int64 })
	fenceShape(t, db, &embeddedReport{Code: "a", Body: "a"}, func(r *embeddedReport) int64 {
		if r.FenceBase == nil {
			return 0
		}
		return number(r.Guard)
	})
	fenceShape(t, db, &pairReport{A: 1, B: 2, Body: "a"}, func(r *pairReport) int64 { return r.Fence })

	placed := pgtest.Open(t, pgtest.Through(pgtest.Database(t)), pgtest.Plugin(gormlock.New()))
	stand.MigrateFence(t, placed)
	stand.Must(t, placed.Exec("CREATE SCHEMA archive").Error)
	stand.Must(t, placed.AutoMigrate(&placedReport{}))
	fenceShape(t, placed, &placedReport{Body: "a"}, func(r *placedReport) int64 { return r.Fence })
}

func fenceShape[T any](t *testing.T, db *gorm.DB, first *T, fence func(*T) int64) {
	t.Helper()
	token := stand.Issue(t, db, "report", 1)
	tx := stand.With(db, token)
	stand.Must(t, tx.Create(first).Error)
	stand.Equal(t, "created", fence(first), token.Number)
	stored := func() T {
		t.Helper()
		var rows []T
		stand.Must(t, db.Find(&rows).Error)
		stand.Equal(t, "rows", len(rows), 1)
		return rows[0]
	}
	at := func(number int64) {
		t.Helper()
		now := stored()
		stand.Equal(t, "stored", fence(&now), number)
	}
	at(token.Number)
	token = stand.Issue(t, db, "report", 1)
	late, tx := tx, stand.With(db, token)
	mustFenced(t, late.Model(first).Update("body", "late").Error)
	stand.Must(t, tx.Model(first).Update("body", "b").Error)
	stand.Equal(t, "updated", fence(first), token.Number)
	at(token.Number)
	token = stand.Issue(t, db, "report", 1)
	late, tx = tx, stand.With(db, token)
	mustFenced(t, late.Save(first).Error)
	stand.Must(t, tx.Save(first).Error)
	at(token.Number)
	mustFenced(t, late.Model([]*T{first}).Update("body", "late").Error)
	stand.Must(t, tx.Model([]*T{first}).Update("body", "c").Error)
	mustFenced(t, late.Model(new(T)).Where("body = 'c'").Update("body", "late").Error)
	now := stored()
	if _, xmin := any(first).(*xminReport); !xmin {
		stand.Must(t, tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&now).Error)
		stand.Equal(t, "upserted", fence(&now), token.Number)
		mustFenced(t, late.Clauses(clause.OnConflict{UpdateAll: true}).Create(&now).Error)
	}
	mustFenced(t, late.Delete(&now).Error)
	stand.Must(t, tx.Delete(&now).Error)
}

// Without versions, or without transactions that gormlock sees, fences are guarded as ever.
func TestFenceWithOtherOptions(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]gormlock.Option{"without versions": gormlock.WithoutVersions(), "plain": gormlock.PlainTransactions()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New(option)))
			stand.Must(t, db.AutoMigrate(&fencedAccount{}))
			stand.MigrateFence(t, db)
			token := stand.Issue(t, db, "account", 1)
			a := fencedAccount{Balance: 1}
			stand.Must(t, stand.With(db, token).Create(&a).Error)
			stand.Equal(t, "created", a.Fence, token.Number)
			later := stand.Issue(t, db, "account", 1)
			mustFenced(t, stand.With(db, token).Model(&a).Update("balance", 2).Error)
			mustFenced(t, stand.With(db, token).Create(&fencedAccount{}).Error)
			_, err := gormlock.Claim[fencedAccount](stand.With(db, token), 1, map[string]any{"balance": 3})
			mustFenced(t, err)
			mustMissToken(t, db.Save(&a).Error)
			stand.Must(t, stand.With(db, later).Save(&a).Error)
			_, err = gormlock.Claim[fencedAccount](stand.With(db, later), 1, map[string]any{"balance": 3})
			stand.Must(t, err)
			stand.Equal(t, "stored", stand.Row[fencedAccount](t, db, a.ID).Fence, later.Number)
			mustFenced(t, db.Transaction(func(tx *gorm.DB) error { return gormlock.FenceTx(tx, token) }))
		})
	}
}

type fencedCell struct {
	Sheet int64 `gorm:"primaryKey;autoIncrement:false"`
	Line  int64 `gorm:"primaryKey;autoIncrement:false"`
	Text  string
	Fence int64 `gormlock:"fence,key=sheet"`
}

// A part of a key may be zero, and GORM leaves it out of the conditions: of a struct that holds a fence, and so was read or
// written, it belongs there as it does with a version.
func TestFencedRowWithAZeroInItsKey(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&fencedCell{}})
	tx := stand.With(db, stand.Issue(t, db, "sheet", 1))
	cells := []fencedCell{{Sheet: 1, Line: 0}, {Sheet: 1, Line: 1}}
	stand.Must(t, tx.Create(&cells).Error)
	stand.Must(t, tx.Model(&cells[0]).Update("text", "first").Error)
	stand.Must(t, unguarded(tx).Model(&cells[0]).Update("text", "one").Error)
	var found []fencedCell
	stand.Must(t, db.Order("line").Find(&found).Error)
	stand.Equal(t, "changed", found[0].Text, "one")
	stand.Equal(t, "the other row", found[1].Text, "")
}

// So it is of a struct whose fence is still 0, as all are after the column was added.
func TestFencedRowWithAZeroInItsKey_neverFenced(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&fencedCell{}})
	tx := stand.With(db, stand.Issue(t, db, "sheet", 1))
	for name, write := range map[string]func(c *fencedCell) error{
		"Update":       func(c *fencedCell) error { return tx.Model(c).Update("text", "one").Error },
		"a struct":     func(c *fencedCell) error { return tx.Model(c).Updates(fencedCell{Text: "one"}).Error },
		"itself":       func(c *fencedCell) error { c.Text = "one"; return tx.Updates(c).Error },
		"Select":       func(c *fencedCell) error { c.Text = "one"; return tx.Select("text").Updates(c).Error },
		"Save":         func(c *fencedCell) error { c.Text = "one"; return tx.Save(c).Error },
		"IgnoreFence":  func(c *fencedCell) error { return unguarded(db).Model(c).Update("text", "one").Error },
		"Save, no row": func(c *fencedCell) error { c.Sheet, c.Text = 1, "one"; deleteCell(t, db, c); return tx.Save(c).Error },
	} {
		stand.Must(t, db.Exec("DELETE FROM fenced_cells").Error)
		stand.Must(t, db.Exec("INSERT INTO fenced_cells VALUES (1, 0, 'a', 0), (1, 1, 'b', 0), (1, 2, 'c', 0)").Error)
		var c fencedCell
		stand.Must(t, db.First(&c, "sheet = 1 AND line = 0").Error)
		if err := write(&c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var found []fencedCell
		stand.Must(t, db.Order("line").Find(&found).Error)
		if len(found) != 3 || found[0].Text != "one" || found[1].Text != "b" || found[2].Text != "c" {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// A key with a zero part names one row. If there is none, all rows with the other part may have been meant.
func TestFencedRowWithAZeroInItsKey_thatIsNotThere(t *testing.T) {
	t.Parallel()
	db := stand.Fenced(t, []any{&fencedCell{}})
	tx := stand.With(db, stand.Issue(t, db, "sheet", 1))
	stand.Must(t, tx.Create(&[]fencedCell{{Sheet: 1, Line: 1}, {Sheet: 1, Line: 2}}).Error)
	for name, err := range map[string]error{
		"Update":      tx.Model(&fencedCell{Sheet: 1}).Update("text", "x").Error,
		"filtered":    tx.Model(&fencedCell{Sheet: 1}).Where("line > 0").Update("text", "x").Error,
		"Delete":      tx.Delete(&fencedCell{Sheet: 1}).Error,
		"IgnoreFence": unguarded(db).Model(&fencedCell{Sheet: 1}).Update("text", "x").Error,
	} {
		if err == nil || !strings.Contains(err.Error(), "no such row") {
			t.Errorf("%s: %v", name, err)
		}
	}
	stand.Must(t, tx.Model(&fencedCell{}).Where("sheet = 1").Update("text", "all").Error)
	var n int64
	stand.Must(t, db.Model(&fencedCell{}).Where("text = 'all'").Count(&n).Error)
	stand.Equal(t, "rows", n, 2)
	cell := fencedCell{Sheet: 1}
	stand.Must(t, tx.Save(&cell).Error)
	stand.Must(t, tx.Model(&cell).Where("text = 'other'").Update("text", "x").Error) // which is there
}

// deleteCell deletes the row of a cell.
func deleteCell(t *testing.T, db *gorm.DB, c *fencedCell) {
	t.Helper()
	stand.Must(t, db.Exec("DELETE FROM fenced_cells WHERE sheet = ? AND line = ?", c.Sheet, c.Line).Error)
}
