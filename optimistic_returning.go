package gormlock

import (
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// versionReturning lets a statement return columns that memory needs. GORM scans rows into structs by position, which
// is wrong where rows are skipped or come in another order: the rows go to a slice of their own and reach their
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

// follows tells whether memory can hold what the server says it wrote.
func (w *versionWrite) follows(stmt *gorm.Statement) bool {
	return len(w.rows) > 0 && (w.batch || w.rows[0].row.CanAddr()) && slices.Contains(stmt.BuildClauses, "RETURNING")
}

// wantAssigned asks for what only the server knows: the versions of a batch, and times.
func (w *versionWrite) wantAssigned(stmt *gorm.Statement) {
	if !w.follows(stmt) {
		return
	}
	column := w.model.column
	if w.batch && (w.checked || w.fence.guards()) {
		w.want(w.model.schema.PrimaryFields...)
	}
	if w.batch && w.op != opDelete && !stmt.ReflectValue.CanAddr() {
		// GORM assigns nothing to the elements of a slice that is not addressable, not even through their pointers.
		w.want(w.model.readable()...)
	}
	ours := column != nil && column.kind != integerVersion && !w.intent.ignores() && (w.batch || w.op != opDelete)
	if ours || w.batch && w.checked && asksForRows(stmt) {
		w.want(column.field)
	}
	if w.intent.touches() {
		for _, field := range stmt.Schema.Fields {
			if field.AutoUpdateTime > 0 && field.DBName != "" {
				w.want(field)
			}
		}
	}
	if w.batch && w.returning.wanted() {
		w.want(w.model.schema.PrimaryFields...)
	}
}

// wantComputed asks for the columns that a map assigned an expression to.
func (w *versionWrite) wantComputed(stmt *gorm.Statement, set clause.Set) {
	some := false
	for i := range set {
		if !computed(set[i].Value) {
			continue
		}
		if !some && (!fromMap(stmt.Dest) || !w.follows(stmt)) {
			return
		}
		if field := w.model.schema.LookUpField(set[i].Column.Name); field != nil && field.DBName != "" && field.Readable {
			w.want(field)
			some = true
		}
	}
	if !some {
		return
	}
	if w.batch {
		w.want(w.model.schema.PrimaryFields...)
	}
	if !w.returning.installed {
		w.returning.install(w, stmt)
	}
}

func fromMap(dest any) bool {
	switch dest.(type) {
	case map[string]any, *map[string]any:
		return true
	}
	return false
}

// computed tells whether the server works a value out.
func computed(value any) bool {
	switch v := value.(type) {
	case clause.Expression, clause.Column, *gorm.DB, gorm.Valuer:
		return true
	case []any: // GORM wraps a sub-query
		return len(v) == 1 && computed(v[0])
	}
	return false
}
