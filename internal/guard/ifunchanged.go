package guard

import (
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/compare"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/statement"
)

// unchanged is the guard of columns that must have the values that a struct held. The zero value guards nothing.
type unchanged struct{ *asked.Unchanged }

// unchanged returns the columns that the statement compares.
func (p *plan) unchanged() unchanged { return unchanged{p.intent.Columns()} }

func (u unchanged) guards() bool { return u.Unchanged != nil }

// leaveOut leaves out fields that are not columns of the table, if the caller names none.
func (u unchanged) leaveOut(p *plan, stmt *gorm.Statement) {
	if !u.guards() || !u.All || !slices.ContainsFunc(u.Columns, statement.IsComputed) {
		return
	}
	u.Columns = slices.DeleteFunc(u.Columns, func(field *schema.Field) bool { return !isColumn(stmt, p.model, field) })
	u.Names = u.Names[:0]
	for _, field := range u.Columns {
		u.Names = append(u.Names, field.DBName)
	}
}

// isOf returns the error of a struct that was read from another row than the written one. A struct without a key names no row: it may be made from
// a form.
func (u unchanged) isOf(p *plan, stmt *gorm.Statement) error {
	if !u.guards() || len(p.rows) != 1 || stmt.DryRun {
		return nil
	}
	before, _ := statement.KeyOf(stmt, p.model.Schema, u.Before)
	key := p.named(stmt, &p.rows[0]).Key
	if before == nil || key == nil || statement.KeyName(before) == statement.KeyName(key) {
		return nil
	}
	stored, err := statement.Stored(stmt.DB, p.model.Schema, [][]any{before, key}) // they may be two spellings of one key
	if err != nil {
		return err
	}
	if stored[1] == nil || stored[0] != nil && statement.KeyName(stored[0]) == statement.KeyName(stored[1]) {
		return nil // or the row is gone, and then the write says so
	}
	return fmt.Errorf("gormlock: IfUnchanged: %s is to be written, and before is %s: give it the struct as it was read from the same row",
		p.rowName(stmt, key), p.rowName(stmt, before))
}

func (unchanged) owns(string) bool { return false }

func (unchanged) assign(_ builder, written bool) bool { return written }

func (unchanged) insert(builder, *clause.Values) {}

func (unchanged) conflict(builder, *clause.OnConflict) {}

// hold writes the condition that the columns have their old values.
func (u unchanged) hold(b builder) {
	for _, field := range u.Columns {
		if kind := b.DataTypeOf(field); dialect.Of(b.DB).IsInexact(kind) {
			fault.Add(b.DB, fmt.Errorf("gormlock: IfUnchanged: %s.%s is a %s, of which the server does not send what it holds: make it a double, or name the other columns",
				b.draft.model.Schema.Name, field.Name, kind))
		}
		c := compare.Of(b.SQL, b.Table, field)
		b.Text(" AND ")
		c.Held(u.Before)
	}
}

// why returns the error of a changed column: the row exists, at the right version. If the server says that the columns are unchanged, the reason is
// another one.
func (u unchanged) why(j *judge, stmt *gorm.Statement, row *Row, current reflect.Value) error {
	is := func(q *gorm.DB) *gorm.DB {
		return q.Where(KeyIn(j.model.Schema, [][]any{row.Key})).Where(asExpected{&j.draft}).Limit(1)
	}
	if same, err := j.lookWhere(stmt.DB, j.columnsToLookAt(), is); err == nil && len(same) > 0 && !j.where.filtered {
		return fmt.Errorf("gormlock: %s: %w", j.rowName(stmt, row.Key), errNotWritten)
	}
	e := j.stale(stmt, row, nil, false)
	if j.version.is() {
		e.Own = hasLeft(stmt, j.model, row.name, j.version.Read(u.Before), false)
	}
	if j.version.is() && j.version.checked {
		e.Actual = j.version.Any(j.version.Read(current))
	}
	e.Columns = u.Names
	return e.Err()
}
