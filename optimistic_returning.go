package gormlock

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// versionReturning lets a statement return columns that memory needs. GORM scans rows into structs by position, which
// is wrong where rows are skipped or come in another order (G6): the rows go to a slice of their own and reach their
// structs by key.
type versionReturning struct {
	fields []*schema.Field
	all    bool // the caller asked for every column

	had        clause.Clause
	hadAny     bool
	installed  bool
	byPosition bool // a plain INSERT, which GORM scans rightly itself
	swapped    bool
	target     reflect.Value
	rows       reflect.Value
}

func (r *versionReturning) wanted() bool { return r != nil && len(r.fields) > 0 }

// want asks for columns.
func (w *versionWrite) want(fields ...*schema.Field) {
	if w.returning == nil {
		w.returning = &versionReturning{}
	}
	r := w.returning
	for _, field := range fields {
		if !slices.Contains(r.fields, field) {
			r.fields = append(r.fields, field)
		}
	}
}

// asksForRows tells whether the caller does.
func asksForRows(stmt *gorm.Statement) bool {
	_, ok := stmt.Clauses["RETURNING"]
	return ok
}

// install replaces the caller's RETURNING by one that has its columns too.
func (r *versionReturning) install(w *versionWrite, stmt *gorm.Statement) {
	r.had, r.hadAny = stmt.Clauses["RETURNING"]
	if r.hadAny {
		asked, _ := r.had.Expression.(clause.Returning)
		r.all = len(asked.Columns) == 0 || len(asked.Columns) == 1 && asked.Columns[0].Name == "*"
		for _, column := range asked.Columns {
			if field := w.model.schema.LookUpField(column.Name); field != nil && field.DBName != "" {
				w.want(field)
			}
		}
	}
	if r.all {
		w.want(w.model.readable()...)
	}
	r.installed = true
	stmt.Clauses["RETURNING"] = clause.Clause{Name: "RETURNING", Expression: r}
}

// Build writes the columns and turns the scan away from the caller's structs.
func (r *versionReturning) Build(builder clause.Builder) {
	stmt, ok := builder.(*gorm.Statement)
	if !ok {
		return
	}
	for i, field := range r.fields {
		if i > 0 {
			_ = stmt.WriteByte(',')
		}
		stmt.QuoteTo(&stmt.SQL, clause.Column{Name: field.DBName})
	}
	if stmt.DryRun || r.swapped {
		return
	}
	r.swapped, r.target = true, stmt.ReflectValue
	r.rows = reflect.New(reflect.SliceOf(stmt.Schema.ModelType)).Elem()
	stmt.ReflectValue = r.rows
}

// collect turns the statement back to its structs.
func (r *versionReturning) collect(stmt *gorm.Statement) {
	if r == nil {
		return
	}
	if r.swapped {
		r.rows, stmt.ReflectValue = stmt.ReflectValue, r.target
		r.swapped = false
	}
	r.restore(stmt)
}

// restore gives the statement the RETURNING it had.
func (r *versionReturning) restore(stmt *gorm.Statement) {
	if r == nil || !r.installed {
		return
	}
	r.installed = false
	if r.hadAny {
		stmt.Clauses["RETURNING"] = r.had
	} else {
		delete(stmt.Clauses, "RETURNING")
	}
}

// byKey is the rows that came back, by the name of their key.
func (r *versionReturning) byKey(stmt *gorm.Statement) map[string]reflect.Value {
	found := make(map[string]reflect.Value, r.len())
	for i := range r.len() {
		row := r.rows.Index(i)
		if key, _ := keyOf(stmt, stmt.Schema, row); key != nil {
			found[keyName(key)] = row
		}
	}
	return found
}

// has tells whether rows were asked for and scanned.
func (r *versionReturning) has() bool { return r != nil && r.rows.IsValid() }

func (r *versionReturning) len() int {
	if !r.has() {
		return 0
	}
	return r.rows.Len()
}

// give copies the returned columns into the caller's struct.
func (r *versionReturning) give(from, to reflect.Value, except *schema.Field) {
	for _, field := range r.fields {
		if field == except {
			continue
		}
		source, place := placeOf(field, from), placeOf(field, to)
		if source.IsValid() && place.IsValid() && place.CanSet() {
			place.Set(source)
		}
	}
}

// readable are the columns that are read.
func (m *versionedModel) readable() []*schema.Field {
	fields := make([]*schema.Field, 0, len(m.schema.DBNames))
	for _, name := range m.schema.DBNames {
		if field := m.schema.FieldsByDBName[name]; field.Readable {
			fields = append(fields, field)
		}
	}
	return fields
}
