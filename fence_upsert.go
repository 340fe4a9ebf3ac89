package gormlock

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// whyFencedUpsert says which row an upsert passed over because it was written with a later token; nil where it passed over
// none, or for reasons of the caller's own.
func (w *versionWrite) whyFencedUpsert(db *gorm.DB) error {
	f, stmt := w.fence, db.Statement
	if !f.guards() || !hasUpsert(stmt) || int(db.RowsAffected) >= f.proposed {
		return nil
	}
	conflict, _ := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	columns, values := w.conflicting(stmt, conflict)
	if len(values) > 0 {
		found, err := w.lookWhere(db, func(q *gorm.DB) *gorm.DB { return q.Where(clause.IN{Column: columns, Values: values}) })
		if err != nil {
			return fmt.Errorf("gormlock: %s: rows that were written with a later token than %s are looked for: %w", w.tableName(stmt), f.token, err)
		}
		for _, current := range found {
			row := versionRow{}
			row.key, _ = keyOf(stmt, w.model.schema, current)
			if err := w.whyFenced(stmt, &row, current, true); err != nil {
				return err
			}
		}
	}
	if len(conflict.Where.Exprs) > 0 || w.compares() {
		return nil
	}
	e := w.fencedError(stmt, w.onlyRow(stmt), f.token)
	e.passed = true
	return e
}

// conflicting is by what the rows of an upsert are found: columns, and for each row their values.
func (w *versionWrite) conflicting(stmt *gorm.Statement, conflict clause.OnConflict) (columns any, values []any) {
	var fields []*schema.Field
	for _, column := range conflict.Columns {
		field := w.model.schema.LookUpField(column.Name)
		if field == nil {
			return nil, nil
		}
		fields = append(fields, field)
	}
	if len(fields) == 0 {
		fields = w.model.schema.PrimaryFields
	}
	names := make([]clause.Column, len(fields))
	for i, field := range fields {
		names[i] = clause.Column{Table: clause.CurrentTable, Name: field.DBName}
	}
	for i := range w.memory.count {
		row := w.memory.was(i) // GORM may have given it the key of another
		if !row.IsValid() {
			row = w.memory.row(i)
		}
		values = append(values, valuesOf(stmt, fields, row))
	}
	if len(fields) == 1 {
		return names[0], values
	}
	return names, values
}

// valuesOf is the values of the fields in row: one as it is, several as a list.
func valuesOf(stmt *gorm.Statement, fields []*schema.Field, row reflect.Value) any {
	values := make([]any, len(fields))
	for i, field := range fields {
		values[i], _ = field.ValueOf(stmt.Context, row)
	}
	if len(values) == 1 {
		return values[0]
	}
	return values
}

// followCreated gives the structs that a create stored their token. Of rows that it may have passed over, those were stored
// that have a key now and had none.
func (w *versionWrite) followCreated(db *gorm.DB) {
	f, stmt := w.fence, db.Statement
	skips := doesNothing(stmt) && w.batch && len(stmt.Schema.FieldsWithDefaultDBValue) > 0
	all := int(db.RowsAffected) >= f.proposed && !skips
	for i := range w.memory.count {
		if row := w.memory.row(i); all || w.gotKey(stmt, i) {
			f.follow(row)
		}
	}
}
