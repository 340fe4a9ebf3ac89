package guard

import (
	"context"
	"database/sql"
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// readInTransaction has structs that were read in a transaction after something may have been written in it: by GORM, by
// SQL of the caller, by a trigger. After a rollback, what they hold may never have been committed. Another writer could
// reach the same version, and the next Save would overwrite its row without an error. So these structs count as not read
// after a rollback.
type readInTransaction struct {
	db     *gorm.DB
	ctx    context.Context
	schema *schema.Schema
	rows   []reflect.Value // the structs, of a model or of whatever else it was read into
	later  *gorm.Statement // where Scan puts what it reads, after the statement
}

// KeepRead notes what a query read, and what it preloads.
func KeepRead(db *gorm.DB) {
	rows := reflect.ValueOf(db.Statement.Dest)
	if memory.HasStrays() && db.Error == nil && !db.DryRun {
		statement.EachStruct(rows, memory.Forget)
	}
	KeepRowsRead(db, rows)
	loseCopies(db, rows)
}

// KeepRowsRead notes that a statement has read rows, or is about to preload them. A read that failed may have read some of
// them.
func KeepRowsRead(db *gorm.DB, rows reflect.Value) { keepRowsRead(db, rows, 0) }

// keepRowsRead does the same, but does not count this many statements, those that read the rows, as written before.
func keepRowsRead(db *gorm.DB, rows reflect.Value, reading int) {
	stmt := db.Statement
	if db.Error != nil && db.RowsAffected == 0 || db.DryRun || !model.NeedsJournal(db, stmt.Schema) {
		return
	}
	j := journal.Of(stmt)
	if j == nil || j.Written() <= reading {
		return
	}
	r := &readInTransaction{db: &gorm.DB{Config: db.Config}, ctx: stmt.Context, schema: stmt.Schema}
	statement.EachStruct(rows, func(row reflect.Value) { r.rows = append(r.rows, row) }) // the caller may go on to read others into his slice
	j.Keep(r)
}

// KeepScan notes that Scan may read rows of a statement whose rows are open now. Rows that the caller scans one by one pass
// no callback, so gormlock does not see them.
func KeepScan(db *gorm.DB) {
	stmt := db.Statement
	if db.Error != nil || db.DryRun {
		return
	}
	j := journal.Of(stmt)
	if j == nil || j.Written() == 0 {
		return
	}
	j.Keep(&readInTransaction{db: &gorm.DB{Config: db.Config}, ctx: stmt.Context, schema: stmt.Schema, later: stmt})
}

// Undo implements journal.Step, as does Lose.
func (r *readInTransaction) Undo() { r.Lose() }

func (r *readInTransaction) Lose() {
	seen := map[any]bool{}
	if r.later != nil {
		r.forgetScanned(seen)
	}
	for _, row := range r.rows {
		r.forgetIn(r.schema, row, seen)
	}
}

// forgetScanned makes what Scan put into its destination count as not read. The statement holds the destination since then.
func (r *readInTransaction) forgetScanned(seen map[any]bool) {
	if _, unscanned := r.later.Dest.(*sql.Rows); unscanned || r.later.Schema == nil || !model.NeedsJournal(r.db, r.later.Schema) && (r.schema == nil || !model.NeedsJournal(r.db, r.schema)) {
		return
	}
	s := r.schema
	if s == nil {
		s = r.later.Schema
	}
	r.forgetIn(s, reflect.ValueOf(r.later.Dest), seen)
}

func (r *readInTransaction) forgetIn(s *schema.Schema, value reflect.Value, seen map[any]bool) {
	m := model.OfSchema(r.db, s)
	statement.EachStruct(value, func(row reflect.Value) {
		if !row.CanAddr() || seen[row.Addr().Interface()] {
			return
		}
		seen[row.Addr().Interface()] = true
		if row.Type() != s.ModelType {
			if m.Column != nil {
				r.forgetForm(m, row)
			}
			return
		}
		if m.Column != nil {
			m.Column.Write(row, m.Column.Unread())
		}
		for _, relation := range statement.OwnRelations(s) {
			if place := statement.Place(relation.Field, row); place.IsValid() && model.NeedsJournal(r.db, relation.FieldSchema) {
				r.forgetIn(relation.FieldSchema, place, seen)
			}
		}
	})
}

// forgetForm does the same for a struct that is not the model but has its version, because an update with it would
// compare that version.
func (r *readInTransaction) forgetForm(m *model.Model, row reflect.Value) {
	stmt := &gorm.Statement{DB: r.db, Context: r.ctx}
	if row.Type() == statement.TimeType || stmt.Parse(row.Addr().Interface()) != nil {
		return
	}
	for _, field := range stmt.Schema.Fields { // it may embed models under prefixes, each with a version
		if word, _, _ := strings.Cut(field.Tag.Get("gormlock"), ","); field.DBName != m.Column.Field.DBName && strings.TrimSpace(word) != "version" {
			continue
		}
		column, holds := m.Column.FormColumn(field)
		if !holds {
			continue
		}
		if held := column.Read(row); !held.Null && !column.Unset(held) {
			column.Write(row, column.OfNoRow())
		}
	}
}
