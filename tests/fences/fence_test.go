package fences_test

import (
	"errors"
	"strings"
	"testing"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type report struct {
	ID        int64
	Body      string
	Fence     int64 `gorm:"not null;default:0" gormlock:"fence,key=report"`
	DeletedAt gorm.DeletedAt
	Notes     []reportNote `gorm:"constraint:-"`
}

// reportNote is a child of a report without a fence.
type reportNote struct{ ID, ReportID int64 }

type reportForm struct{ Body string }

// withAndWithoutTransactions runs a test on the models where GORM begins transactions of its own, and where it does not.
func withAndWithoutTransactions(t *testing.T, models []any, test func(t *testing.T, db *gorm.DB)) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, stand.Fenced(t, models))
	})
	t.Run("without transactions", func(t *testing.T) {
		t.Parallel()
		test(t, stand.Fenced(t, models, pgtest.SkipDefaultTransaction()))
	})
}

func mustBeFenced(t testing.TB, err error) *gormlock.FencedError {
	t.Helper()
	var refused *gormlock.FencedError
	if !errors.Is(err, gormlock.ErrFenced) || !errors.As(err, &refused) || errors.Is(err, gormlock.ErrStale) || gormlock.IsRetryable(err) {
		t.Fatalf("want a refusal by a fence, got %v", err)
	}
	return refused
}

func mustFenced(t testing.TB, err error) {
	t.Helper()
	_ = mustBeFenced(t, err)
}

func mustMissToken(t testing.TB, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, gormlock.ErrFenceMissing) {
		t.Fatalf("want a missing token, got %v", err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in: %v", word, err)
		}
	}
}

// unguarded writes past every fence.
func unguarded(db *gorm.DB) *gorm.DB {
	return db.Session(&gorm.Session{NewDB: true}).Clauses(gormlock.IgnoreFence())
}

// draft is a report, and the token that it was written by.
func draft(t *testing.T) (*gorm.DB, fence.Token, report) {
	t.Helper()
	db := stand.Fenced(t, []any{&report{}, &reportNote{}})
	token := stand.Issue(t, db, "report", 1)
	r := report{Body: "draft"}
	stand.Must(t, stand.With(db, token).Create(&r).Error)
	return db, token, r
}

// TestL1_Fence is the story: a holder that was superseded is refused, before the later one has written anything.
func TestL1_Fence(t *testing.T) {
	t.Parallel()
	db, old, r := draft(t)
	stand.Equal(t, "created", r.Fence, old.Number)
	stand.Equal(t, "stored", stand.Row[report](t, db, r.ID).Fence, old.Number)
	stand.Must(t, stand.With(db, old).Model(&r).Update("body", "first").Error)

	late := stand.Issue(t, db, "report", 1)
	err := stand.With(db, old).Model(&r).Update("body", "second").Error
	refused := mustBeFenced(t, err)
	stand.Equal(t, "token", refused.Token, old)
	stand.Equal(t, "latest", refused.Latest, late)
	stand.Equal[any](t, "key", refused.PrimaryKey["id"], r.ID)
	stand.Equal(t, "message", err.Error(), "gormlock: reports id=1: token report/1#1099511627777 is superseded, report/1#1099511627778 has been issued")
	stand.Equal(t, "in memory", r.Body, "first")
	r.Body = "saved"
	mustFenced(t, stand.With(db, old).Save(&r).Error)
	stand.Equal(t, "stored", stand.Row[report](t, db, r.ID).Body, "first")
	refused = mustBeFenced(t, stand.With(db, old).Create(&report{Body: "late"}).Error)
	stand.Equal(t, "latest", refused.Latest, late)
	stand.Equal(t, "op", refused.Op, "create")

	stand.Must(t, db.Clauses(gormlock.Fence(late)).Model(&r).Update("body", "by the later").Error)
	stand.Equal(t, "in memory", r.Fence, late.Number)
	stand.Equal(t, "stored", stand.Row[report](t, db, r.ID).Fence, late.Number)
	// The fence of the row holds where the table of tokens says nothing.
	stand.Must(t, db.Exec("DELETE FROM "+fence.Table).Error)
	err = stand.With(db, old).Model(&r).Update("body", "second").Error
	stand.Equal(t, "written", mustBeFenced(t, err).Latest, fence.Token{Number: late.Number})
	stand.Equal(t, "message", err.Error(), "gormlock: reports id=1: token report/1#1099511627777 is superseded, the row was written with 1099511627778")
	err = stand.With(db, old).Create(&report{}).Error
	stand.Equal(t, "never issued", mustBeFenced(t, err).Latest, fence.Token{})
	stand.Equal(t, "message", err.Error(), "gormlock: reports: token report/1#1099511627777 was never issued in the table gormlock_fence that the search_path finds, or its issue was rolled back")
}

// The control: what fencing refuses is stored where there is no fence.
func TestL1_WithoutFenceTheLateWriteIsStored(t *testing.T) {
	t.Parallel()
	db, old, r := draft(t)
	late := stand.Issue(t, db, "report", 1)
	stand.Must(t, stand.With(db, late).Model(&r).Update("body", "by the later").Error)
	stand.Must(t, unguarded(stand.With(db, old)).Model(&r).Update("body", "late").Error)
	stand.Equal(t, "stored", stand.Row[report](t, db, r.ID).Body, "late")
	stand.Equal(t, "fence", stand.Row[report](t, db, r.ID).Fence, late.Number)
	// and where the table of tokens is not asked.
	latest := stand.Issue(t, db, "report", 1)
	stand.Must(t, db.Exec("UPDATE reports SET body = 'late again' WHERE fence <= ?", late.Number).Error)
	stand.Equal(t, "stored", stand.Row[report](t, db, r.ID).Body, "late again")
	mustFenced(t, stand.With(db, late).Model(&r).Update("body", "refused").Error)
	stand.Must(t, stand.With(db, latest).Model(&r).Update("body", "by the latest").Error)
}

// fencedPath is a way to write "new" into the body of a report, or to delete it.
type fencedPath struct {
	write   func(tx *gorm.DB, r *report) error
	deletes bool
	hard    bool
	alone   bool // the struct is written without its notes
	copied  bool // the struct is handed over by value: memory stays
	bulk    bool // no struct is known
	inserts bool // where the row is gone it is made anew
}

var fencedPaths = map[string]fencedPath{
	"Save": {inserts: true, write: func(tx *gorm.DB, r *report) error { r.Body = "new"; return tx.Save(r).Error }},
	"Save of a slice": {inserts: true, alone: true, write: func(tx *gorm.DB, r *report) error {
		r.Body, r.Notes = "new", nil
		return tx.Save([]*report{r}).Error
	}},
	"Save, fence omitted": {inserts: true, write: func(tx *gorm.DB, r *report) error {
		r.Body = "new"
		return tx.Omit("fence").Save(r).Error
	}},
	"FullSaveAssociations": {inserts: true, write: func(tx *gorm.DB, r *report) error {
		r.Body = "new"
		return tx.Session(&gorm.Session{FullSaveAssociations: true}).Save(r).Error
	}},
	"Update": {write: func(tx *gorm.DB, r *report) error { return tx.Model(r).Update("body", "new").Error }},
	"Update, expression": {write: func(tx *gorm.DB, r *report) error {
		return tx.Model(r).Update("body", gorm.Expr("'ne' || 'w'")).Error
	}},
	"Update of a slice": {alone: true, write: func(tx *gorm.DB, r *report) error {
		r.Notes = nil
		return tx.Model([]*report{r}).Update("body", "new").Error
	}},
	"Updates, struct": {write: func(tx *gorm.DB, r *report) error { return tx.Model(r).Updates(report{Body: "new"}).Error }},
	"Updates, struct with a fence": {write: func(tx *gorm.DB, r *report) error {
		return tx.Model(r).Updates(report{Body: "new", Fence: 1 << 60}).Error
	}},
	"Updates, itself": {write: func(tx *gorm.DB, r *report) error { r.Body = "new"; return tx.Updates(r).Error }},
	"Updates, all selected": {alone: true, write: func(tx *gorm.DB, r *report) error {
		r.Body, r.Notes = "new", nil
		return tx.Select("*").Updates(r).Error
	}},
	"Updates, map":  {write: func(tx *gorm.DB, r *report) error { return tx.Model(r).Updates(map[string]any{"body": "new"}).Error }},
	"Updates, form": {write: func(tx *gorm.DB, r *report) error { return tx.Model(r).Updates(reportForm{"new"}).Error }},
	"Updates, by value": {copied: true, alone: true, write: func(tx *gorm.DB, r *report) error {
		return tx.Model(report{ID: r.ID}).Updates(map[string]any{"body": "new"}).Error
	}},
	"UpdateColumn":  {write: func(tx *gorm.DB, r *report) error { return tx.Model(r).UpdateColumn("body", "new").Error }},
	"UpdateColumns": {write: func(tx *gorm.DB, r *report) error { return tx.Model(r).UpdateColumns(report{Body: "new"}).Error }},
	"Select": {alone: true, write: func(tx *gorm.DB, r *report) error {
		return tx.Model(r).Select("body").Updates(report{Body: "new"}).Error
	}},
	"Omit": {write: func(tx *gorm.DB, r *report) error {
		return tx.Model(r).Omit("fence").Updates(report{Body: "new"}).Error
	}},
	"RETURNING": {write: func(tx *gorm.DB, r *report) error {
		return tx.Model(r).Clauses(clause.Returning{}).Update("body", "new").Error
	}},
	"Table and Model": {write: func(tx *gorm.DB, r *report) error {
		return tx.Table("reports AS x").Model(r).Update("body", "new").Error
	}},
	"own conditions": {write: func(tx *gorm.DB, r *report) error {
		return tx.Model(r).Where("body = ? OR 1=1", "draft").Update("body", "new").Error
	}},
	"Upsert, all columns": {inserts: true, alone: true, write: func(tx *gorm.DB, r *report) error {
		r.Body, r.Notes = "new", nil
		return tx.Clauses(stand.UpdateAll).Create(r).Error
	}},
	"Upsert, some columns": {inserts: true, alone: true, write: func(tx *gorm.DB, r *report) error {
		r.Body, r.Notes = "new", nil
		return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, DoUpdates: clause.AssignmentColumns([]string{"body"})}).Create(r).Error
	}},
	"FirstOrCreate, assign": {alone: true, copied: true, inserts: true, write: func(tx *gorm.DB, r *report) error {
		var found report
		return tx.Where(report{ID: r.ID}).Assign(report{Body: "new"}).FirstOrCreate(&found).Error
	}},
	"G.Updates": {copied: true, alone: true, write: func(tx *gorm.DB, r *report) error {
		_, err := gorm.G[report](tx).Updates(tx.Statement.Context, report{ID: r.ID, Body: "new"})
		return err
	}},
	"Delete, soft":        {deletes: true, alone: true, write: func(tx *gorm.DB, r *report) error { return tx.Delete(r).Error }},
	"Delete, soft, slice": {deletes: true, alone: true, write: func(tx *gorm.DB, r *report) error { return tx.Delete([]*report{r}).Error }},
	"Delete, hard":        {deletes: true, hard: true, alone: true, write: func(tx *gorm.DB, r *report) error { return tx.Unscoped().Delete(r).Error }},
	"Delete, hard, slice": {deletes: true, hard: true, alone: true, write: func(tx *gorm.DB, r *report) error {
		return tx.Unscoped().Delete([]*report{r}).Error
	}},

	"bulk": {bulk: true, write: func(tx *gorm.DB, r *report) error {
		return tx.Model(&report{}).Where("id = ?", r.ID).Update("body", "new").Error
	}},
	"bulk, expression": {bulk: true, write: func(tx *gorm.DB, r *report) error {
		return tx.Model(&report{}).Where("id = ?", r.ID).Update("body", gorm.Expr("'ne' || 'w'")).Error
	}},
	"global": {bulk: true, write: func(tx *gorm.DB, _ *report) error {
		return tx.Session(&gorm.Session{AllowGlobalUpdate: true}).Unscoped().Model(&report{}).Update("body", "new").Error
	}},
	"Set clause": {bulk: true, write: func(tx *gorm.DB, r *report) error {
		return tx.Model(r).Where("id = ?", r.ID).Clauses(clause.Set{{Column: clause.Column{Name: "body"}, Value: "new"}}).Updates(map[string]any{}).Error
	}, alone: true},
	"G.Update": {bulk: true, write: func(tx *gorm.DB, r *report) error {
		_, err := gorm.G[report](tx).Where("id = ?", r.ID).Update(tx.Statement.Context, "body", "new")
		return err
	}},
	"G.Set().Update": {bulk: true, write: func(tx *gorm.DB, r *report) error {
		_, err := gorm.G[report](tx).Where("id = ?", r.ID).Set(clause.Assignment{Column: clause.Column{Name: "body"}, Value: "new"}).Update(tx.Statement.Context)
		return err
	}},
	"Delete by key": {bulk: true, deletes: true, write: func(tx *gorm.DB, r *report) error { return tx.Delete(&report{}, r.ID).Error }},
	"Delete by key, hard": {bulk: true, deletes: true, hard: true, write: func(tx *gorm.DB, r *report) error {
		return tx.Unscoped().Delete(&report{}, r.ID).Error
	}},
	"global, hard": {bulk: true, deletes: true, hard: true, write: func(tx *gorm.DB, _ *report) error {
		return tx.Session(&gorm.Session{AllowGlobalUpdate: true}).Unscoped().Delete(&report{}).Error
	}},
	"G.Delete": {bulk: true, deletes: true, write: func(tx *gorm.DB, r *report) error {
		_, err := gorm.G[report](tx).Where("id = ?", r.ID).Delete(tx.Statement.Context)
		return err
	}},
}

// fencedStates are what can be of the row and the token when the write comes.
var fencedStates = []string{"fitting", "superseded", "written", "written by another key", "no token", "wrong key", "zero", "gone", "gone, superseded", "NULL"}

// eachDialect runs a test on each kind of database, with tables for the models, each beside the others.
func eachDialect(t *testing.T, models []any, test func(t *testing.T, dialect string, db *gorm.DB)) {
	t.Helper()
	for dialect, open := range map[string]func(t testing.TB) *gorm.DB{
		"postgres": func(t testing.TB) *gorm.DB { return stand.Fenced(t, models) },
		"prepared": func(t testing.TB) *gorm.DB { return stand.Fenced(t, models, pgtest.PrepareStmt()) },
		"simple":   func(t testing.TB) *gorm.DB { return stand.Fenced(t, models, pgtest.SimpleProtocol()) },
		"config":   func(t testing.TB) *gorm.DB { return stand.Fenced(t, models, pgtest.SkipDefaultTransaction()) },
		"sqlite":   func(t testing.TB) *gorm.DB { return stand.OnSQLite(t, models) },
	} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			test(t, dialect, open(t))
		})
	}
}

// TestFenceMatrix states for every write path, token and kind of transaction what happens to row, error, struct and
// children.
func TestFenceMatrix(t *testing.T) {
	t.Parallel()
	eachDialect(t, []any{&report{}, &reportNote{}}, func(t *testing.T, dialect string, db *gorm.DB) {
		stand.Must(t, dropNotNull(db))
		for pathName, p := range fencedPaths {
			for txName, transaction := range stand.Begin {
				if txName != "implicit" && (dialect == "prepared" || dialect == "simple") {
					continue // the statement is the same
				}
				for _, state := range fencedStates {
					t.Run(pathName+"/"+txName+"/"+state, func(t *testing.T) { fenceMatrix(t, db, p, transaction, state) })
				}
			}
		}
	})
}

// dropNotNull lets the column be NULL, as in a table that got it by a migration.
func dropNotNull(db *gorm.DB) error {
	if db.Name() == "postgres" {
		return db.Exec("ALTER TABLE reports ALTER fence DROP NOT NULL").Error
	}
	return nil
}

func fenceMatrix(t *testing.T, db *gorm.DB, p fencedPath, transaction func(*gorm.DB, func(*gorm.DB) error) error, state string) {
	postgres := db.Name() == "postgres"
	stand.Must(t, db.Exec("DELETE FROM report_notes").Error)
	stand.Must(t, db.Exec("DELETE FROM reports").Error)
	token := someToken(t, db)
	later := issued(token, token.Number+1)
	r := report{Body: "draft", Fence: token.Number - 1}
	stand.Must(t, unguarded(db).Create(&r).Error)
	want := stand.Row[report](t, db, r.ID)
	if !p.alone {
		r.Notes = []reportNote{{}}
	}
	held := r
	tx, refused, missing, writes := stand.With(db, token), false, false, true
	switch state {
	case "superseded":
		if refused = postgres; refused {
			stand.Issue(t, db, "report", 1)
		}
	case "written":
		if postgres {
			stand.Issue(t, db, "report", 1)
		}
		stand.Must(t, db.Exec("UPDATE reports SET fence = ?", later.Number).Error)
		want.Fence, refused = later.Number, true
	case "written by another key":
		stand.Must(t, db.Exec("UPDATE reports SET fence = ?", token.Number+1).Error)
		want.Fence, refused = token.Number+1, true
	case "no token":
		tx, missing = stand.With(db), true
	case "wrong key":
		tx, missing = stand.With(db, fence.Token{Space: 1, ID: 7, Topic: "invoice", Name: "invoice/1", Number: 1 << 50}), true
	case "zero":
		tx, missing = stand.With(db, issued(token, 0)), true
	case "gone":
		stand.Must(t, db.Exec("DELETE FROM reports").Error)
		writes = p.inserts
	case "gone, superseded":
		stand.Must(t, db.Exec("DELETE FROM reports").Error)
		if refused = postgres; refused {
			stand.Issue(t, db, "report", 1)
		} else {
			writes = p.inserts
		}
	case "NULL":
		if postgres {
			stand.Must(t, db.Exec("UPDATE reports SET fence = NULL").Error)
		}
	}
	err := transaction(tx, func(tx *gorm.DB) error { return p.write(tx, &r) })
	switch {
	case missing:
		mustMissToken(t, err)
	case refused:
		e := mustBeFenced(t, err)
		stand.Equal(t, "token", e.Token, token)
		stand.Equal(t, "latest", e.Latest.Number, later.Number)
		stand.Equal(t, "table", e.Table, "reports")
	default:
		stand.Must(t, err)
	}
	writes = writes && !missing && !refused

	var rows []report
	stand.Must(t, db.Unscoped().Find(&rows).Error)
	gone := strings.HasPrefix(state, "gone")
	switch {
	case gone && !writes, writes && p.hard:
		stand.Equal(t, "rows", len(rows), 0)
	case len(rows) != 1:
		t.Fatal("rows", rows)
	case writes && p.deletes:
		stand.Equal(t, "deleted", rows[0].DeletedAt.Valid, true)
		stand.Equal(t, "fence", rows[0].Fence, token.Number)
	case writes:
		stand.Equal(t, "body", rows[0].Body, "new")
		stand.Equal(t, "fence", rows[0].Fence, token.Number)
	default:
		stand.Equal(t, "body", rows[0].Body, "draft")
		stand.Equal(t, "fence", rows[0].Fence, want.Fence)
		stand.Equal(t, "deleted", rows[0].DeletedAt.Valid, false)
	}
	switch {
	case missing, p.copied, p.bulk, p.hard, !writes:
		stand.Equal(t, "fence in memory", r.Fence, held.Fence)
		stand.Equal(t, "deleted in memory", r.DeletedAt.Valid, false)
	default:
		stand.Equal(t, "fence in memory", r.Fence, token.Number)
	}
	var notes int64
	stand.Must(t, db.Model(&reportNote{}).Count(&notes).Error)
	children := int64(0)
	if writes && !p.alone && !p.bulk {
		children = 1
	}
	if gone && !p.alone && !p.bulk && err == nil { // GORM saves the children of a row that is gone
		children = notes
	}
	stand.Equal(t, "children", notes, children)
}

func issued(token fence.Token, number int64) fence.Token {
	token.Number = number
	return token
}

// someToken is the next token of a report, made by hand where no table keeps them.
func someToken(t testing.TB, db *gorm.DB) fence.Token {
	t.Helper()
	if db.Name() == "postgres" {
		return stand.Issue(t, db, "report", 1)
	}
	return fence.Token{Space: 1, ID: 1, Topic: "report", Name: "report/1", Number: 100}
}
