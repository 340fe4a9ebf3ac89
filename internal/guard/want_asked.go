package guard

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/statement"
)

// Columns that the caller's own RETURNING asks for.

// asks reports whether the caller wants columns of the one struct that a write is about. GORM would read them into the struct itself, and keep its
// old values where the row has NULL. So they are read into another one.
func (d *draft) asks(stmt *gorm.Statement) bool {
	return !d.batch && !d.where.ofModel && d.version.is() && asksByClause(stmt)
}

func asksByClause(stmt *gorm.Statement) bool {
	_, is := stmt.Clauses["RETURNING"].Expression.(clause.Returning)
	return is
}

// wantAsked makes the statement return what its caller asks for: all columns of the model if the caller does not name them.
func (d *draft) wantAsked(stmt *gorm.Statement, asked []clause.Column) {
	if len(asked) == 0 {
		d.wantWhole(stmt)
	}
	for _, column := range asked {
		switch field := d.model.Schema.LookUpField(column.Name); {
		case column.Name == "*":
			d.wantWhole(stmt)
		case field != nil && field.DBName != "" && !column.Raw:
			d.want(field)
		default:
			d.wantWhole(stmt)
			d.returning.others = append(d.returning.others, column)
		}
	}
}

// wantWholeRows makes a bulk statement return whole rows if its caller asks for some columns, including the version. GORM reads them into structs,
// and the next Save of one would write the columns that were not returned as empty.
func (d *draft) wantWholeRows(stmt *gorm.Statement) {
	if !d.version.is() || !d.isBulk() || !returns(stmt) || !statement.AsksForRows(stmt) {
		return
	}
	had := stmt.Clauses["RETURNING"]
	asked, _ := had.Expression.(clause.Returning)
	names := func(field *schema.Field) bool {
		return slices.ContainsFunc(asked.Columns, func(c clause.Column) bool { return c.Name == field.DBName || c.Name == field.Name })
	}
	isRaw := func(c clause.Column) bool { return c.Raw }
	all := len(asked.Columns) == 0 || len(asked.Columns) == 1 && asked.Columns[0].Name == "*"
	if !all && !names(d.version.Field) && !slices.ContainsFunc(asked.Columns, isRaw) {
		return
	}
	if into := stmt.ReflectValue; into.Kind() == reflect.Struct && into.CanSet() && asksByClause(stmt) {
		d.wantWhole(stmt)
		d.returning.bulk = true
		return
	}
	_, joins := stmt.Clauses["FROM"]
	if all && !joins {
		return
	}
	isStar := func(c clause.Column) bool { return c.Name == "*" }
	columns, table := slices.DeleteFunc(slices.Clone(asked.Columns), isStar), ""
	if joins { // other tables may have columns of the same name
		table = clause.CurrentTable
	}
	for _, field := range readable(stmt, d.model) {
		if !names(field) {
			columns = append(columns, clause.Column{Table: table, Name: field.DBName})
		}
	}
	d.returning = &returning{callers: callers{had, true, true}, byPosition: true}
	stmt.Clauses["RETURNING"] = clause.Clause{Name: "RETURNING", Expression: anew{clause.Returning{Columns: columns}}}
}

// anew is a RETURNING with which GORM reads each row into a new element. With its own clause.Returning, GORM reads columns into existing elements,
// and keeps their old values where a row has NULL.
type anew struct{ columns clause.Returning }

// Build writes the columns.
func (a anew) Build(to clause.Builder) { a.columns.Build(to) }

// wantStored asks a plain INSERT for xmin, and for values that the server stores differently, such as a time at the precision of its column. It
// also asks for the defaults that GORM does not ask for if the caller names other columns.
func (d *draft) wantStored(stmt *gorm.Statement) {
	v := &d.version
	asked, byUser := stmt.Clauses["RETURNING"]
	if d.memory.Count == 0 || !returns(stmt) || v.IsInteger() && !byUser {
		return
	}
	if byUser && asksByClause(stmt) {
		for _, field := range stmt.Schema.FieldsWithDefaultDBValue {
			if field.Readable {
				d.want(field)
			}
		}
		d.want(v.Field)
		d.returning.inOrder = true
		return
	}
	if d.intent.Ignores() {
		return
	}
	given, _ := asked.Expression.(clause.Returning)
	columns := slices.Clone(given.Columns)
	all := byUser && len(columns) == 0
	if all && v.IsInteger() && !d.batch {
		return
	}
	fields := stmt.Schema.FieldsWithDefaultDBValue
	if all {
		fields = stmt.Schema.Fields
	}
	for _, field := range fields {
		if field.DBName != "" && field.Readable && isColumn(stmt, d.model, field) && (field != v.Field || all && v.IsInteger()) && !slices.ContainsFunc(columns, func(c clause.Column) bool { return c.Name == field.DBName || c.Name == field.Name }) {
			columns = append(columns, clause.Column{Name: field.DBName})
		}
	}
	if !v.IsInteger() {
		columns = append(columns, clause.Column{Name: v.Field.DBName})
	}
	d.returning = &returning{callers: callers{asked, byUser, true}, byPosition: true}
	stmt.Clauses["RETURNING"] = clause.Clause{Name: "RETURNING", Expression: clause.Returning{Columns: columns}}
}
