package guard

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/statement"
)

// Observation is what a statement returns about the rows that it writes, in addition to what it returns anyway.
type Observation struct {
	returning *returning // receives its rows
	own       bool       // it was added only for the observation
	structs   bool       // GORM reads the rows into the structs themselves
}

// Observe makes a statement that is about to be built return these columns of the rows that it writes. It costs no round trip. It returns nil if
// that is not possible: the server returns no rows, or the caller's own RETURNING reads them.
func Observe(stmt *gorm.Statement, fields []*schema.Field) *Observation {
	if stmt.DryRun || !returns(stmt) || slices.ContainsFunc(fields, func(f *schema.Field) bool { return !f.Readable }) {
		return nil
	}
	w := writeOf(stmt)
	if w != nil && w.returning != nil && w.returning.installed && !w.returning.byPosition {
		w.returning.watched = append(w.returning.watched, fields...)
		return &Observation{returning: w.returning}
	}
	if slices.Contains(stmt.BuildClauses, "VALUES") {
		return observeCreate(stmt, w, fields)
	}
	if statement.AsksForRows(stmt) {
		return nil
	}
	o := &Observation{returning: &returning{watched: fields}}
	if w == nil {
		o.own = true
		o.returning.install(nil, stmt)
		return o
	}
	w.returning = o.returning
	o.returning.install(&w.draft, stmt)
	return o
}

// observeCreate makes a create return the columns into its structs. GORM assigns returned rows by position, so this is not possible if a row may be
// left out, or if the values are maps.
func observeCreate(stmt *gorm.Statement, w *Write, fields []*schema.Field) *Observation {
	conflict, upserts := stmt.Clauses["ON CONFLICT"].Expression.(clause.OnConflict)
	fenced := w != nil && w.fence != nil
	if upserts && (conflict.DoNothing || len(conflict.Where.Exprs) > 0 || fenced) || !areStructs(stmt) {
		return nil
	}
	asked, byUser := stmt.Clauses["RETURNING"]
	given, _ := asked.Expression.(clause.Returning)
	o := &Observation{structs: true}
	if byUser && (len(given.Columns) == 0 || given.Columns[0].Name == "*") {
		return o
	}
	columns := slices.Clone(given.Columns)
	if !byUser {
		fields = slices.Concat(stmt.Schema.FieldsWithDefaultDBValue, fields)
	}
	for _, field := range fields {
		if field.Readable && !slices.ContainsFunc(columns, func(c clause.Column) bool { return c.Name == field.DBName || c.Name == field.Name }) {
			columns = append(columns, clause.Column{Name: field.DBName})
		}
	}
	if w == nil || w.returning == nil {
		o.returning, o.own = &returning{callers: callers{asked, byUser, true}, byPosition: true}, true
	}
	stmt.Clauses["RETURNING"] = clause.Clause{Name: "RETURNING", Expression: clause.Returning{Columns: columns}}
	return o
}

func areStructs(stmt *gorm.Statement) bool {
	are := true
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) {
		are = are && row.Type() == stmt.Schema.ModelType && row.CanAddr()
	})
	return are && !statement.FromMap(stmt.Dest) && !isMaps(stmt.Dest)
}

func isMaps(dest any) bool {
	switch dest.(type) {
	case []map[string]any, *[]map[string]any:
		return true
	}
	return false
}

// InStructs reports whether Rows returns the structs themselves, written or not.
func (o *Observation) InStructs() bool { return o.structs }

// Rows ends the observation, and returns the rows that the statement wrote.
func (o *Observation) Rows(stmt *gorm.Statement) (rows []reflect.Value) {
	if o.own {
		o.returning.collect(stmt)
	}
	if !o.structs {
		return o.returning.seen()
	}
	statement.EachStruct(stmt.ReflectValue, func(row reflect.Value) { rows = append(rows, row) })
	return rows
}
