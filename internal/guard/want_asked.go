package guard

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/statement"
)

// What the caller's own RETURNING asks for.

// asksByName reports whether the caller wants columns of the one struct that an update writes. GORM reads them into the struct, and would
// leave there what it had where the row has NULL.
func (d *draft) asksByName(stmt *gorm.Statement) bool {
	if d.batch || !d.version.is() || d.op == OpDelete {
		return false
	}
	return d.namesColumns(stmt)
}

// namesColumns reports whether the caller's RETURNING names nothing but columns of the model.
func (d *draft) namesColumns(stmt *gorm.Statement) bool {
	asked, ok := stmt.Clauses["RETURNING"].Expression.(clause.Returning)
	return ok && !slices.ContainsFunc(asked.Columns, func(c clause.Column) bool {
		field := d.model.Schema.LookUpField(c.Name)
		return c.Name != "*" && (c.Raw || field == nil || field.DBName == "")
	})
}

// wantWholeRows makes a bulk statement return whole rows if its caller asks for some columns, the version among them. GORM
// reads them into structs, and the next Save of one would write what it did not return as empty.
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
	columns, table := slices.Clone(asked.Columns), ""
	if _, joins := stmt.Clauses["FROM"]; joins { // other tables may have columns of the same name
		table = clause.CurrentTable
	}
	for _, field := range d.model.Readable() {
		if !all && !names(field) {
			columns = append(columns, clause.Column{Table: table, Name: field.DBName})
		}
	}
	whole := clause.Returning{Columns: columns}
	into := stmt.ReflectValue
	empties := into.Kind() == reflect.Struct && into.CanSet() && d.memory.Count == 1 && !stmt.DryRun
	if all && !empties {
		return
	}
	d.returning = &returning{callers: callers{had, true, true}, byPosition: true, empties: empties}
	stmt.Clauses["RETURNING"] = clause.Clause{Name: "RETURNING", Expression: whole}
	if empties {
		stmt.Clauses["RETURNING"] = clause.Clause{Name: "RETURNING", Expression: emptying{whole, into, d.model.Readable()}}
	}
}

// emptying is a RETURNING that empties the struct into which GORM reads: where the row has NULL, it would leave what it had.
type emptying struct {
	columns clause.Returning
	into    reflect.Value
	fields  []*schema.Field
}

// Build writes the columns.
func (e emptying) Build(to clause.Builder) {
	e.columns.Build(to)
	for _, field := range e.fields {
		if place := statement.Place(field, e.into); place.IsValid() && place.CanSet() {
			place.SetZero()
		}
	}
}

// wantStored asks a plain INSERT for values that the server stores differently, such as a time at the precision of its
// column, and for xmin. It also asks for the defaults that GORM does not ask for if the caller names other columns.
func (d *draft) wantStored(stmt *gorm.Statement) {
	v := &d.version
	asked, byUser := stmt.Clauses["RETURNING"]
	if d.memory.Count == 0 || d.intent.ignores() || !returns(stmt) || v.IsInteger() && !byUser {
		return
	}
	if byUser && d.namesColumns(stmt) {
		for _, field := range stmt.Schema.FieldsWithDefaultDBValue {
			if field.Readable {
				d.want(field)
			}
		}
		d.want(v.Field)
		d.returning.inOrder = true
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
		if field.DBName != "" && field.Readable && (field != v.Field || all && v.IsInteger()) && !slices.ContainsFunc(columns, func(c clause.Column) bool { return c.Name == field.DBName || c.Name == field.Name }) {
			columns = append(columns, clause.Column{Name: field.DBName})
		}
	}
	if !v.IsInteger() {
		columns = append(columns, clause.Column{Name: v.Field.DBName})
	}
	d.returning = &returning{callers: callers{asked, byUser, true}, byPosition: true}
	stmt.Clauses["RETURNING"] = clause.Clause{Name: "RETURNING", Expression: clause.Returning{Columns: columns}}
}
