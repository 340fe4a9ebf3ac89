package reading

import (
	"reflect"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
)

// KeepResult notes that a function returns what is in dest, a pointer, and that it was made of text which the open transaction has
// stored. A rollback makes unread what the caller can still share with it: what is behind pointers, in slices and in maps. It cannot
// reach a struct that the caller gets by value, so such a struct of a model is unread at once, as the copies of gorm.G are. Where gormlock
// does not see the end of the transaction, what was written or read in it was unread before it became text.
func KeepResult(db *gorm.DB, dest any) {
	j := journal.Of(db.Statement)
	if j == nil || j.IsOver() || install.Of(db).WithoutVersions { // over: a text has committed it
		return
	}
	found := newResult(&gorm.DB{Config: db.Config})
	found.look(reflect.ValueOf(dest).Elem(), false)
	for _, step := range found.steps() {
		j.Keep(step)
	}
	if len(found.maps) > 0 {
		j.Record(found.forgetInMaps)
	}
	for m, copies := range found.copied {
		unread(m, copies)
	}
}

// result is what may carry versions in something that is returned.
type result struct {
	db     *gorm.DB
	models map[*model.Model][]reflect.Value // structs
	copied map[*model.Model][]reflect.Value // those of which the caller gets copies
	forms  []reflect.Value                  // structs of no model whose version an update could take
	named  []reflect.Value                  // maps from names to values
	maps   []reflect.Value                  // maps that have structs or arrays in them, which cannot be set in place
	seen   map[uintptr]bool
}

func newResult(db *gorm.DB) *result {
	return &result{db: db, models: map[*model.Model][]reflect.Value{}, copied: map[*model.Model][]reflect.Value{}, seen: map[uintptr]bool{}}
}

// look finds what is in a value. Shared says that the caller gets no copy of it.
func (r *result) look(value reflect.Value, shared bool) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() && !r.seen[value.Pointer()] {
			r.seen[value.Pointer()] = true
			r.look(value.Elem(), true)
		}
	case reflect.Interface:
		r.look(value.Elem(), shared)
	case reflect.Slice, reflect.Array:
		for i := 0; i < value.Len() && mayHold(value.Type().Elem()); i++ {
			r.look(value.Index(i), shared || value.Kind() == reflect.Slice)
		}
	case reflect.Map:
		r.lookInMap(value)
	case reflect.Struct:
		if value.CanAddr() && !scans(value) {
			r.lookInStruct(value, shared)
		}
	default:
	}
}

func (r *result) lookInMap(value reflect.Value) {
	element := value.Type().Elem()
	if value.Len() == 0 || !mayHold(element) {
		return
	}
	if element.Kind() == reflect.Struct || element.Kind() == reflect.Array {
		r.maps = append(r.maps, value)
		return
	}
	if value.Type() == reflect.TypeFor[map[string]any]() {
		r.named = append(r.named, value)
	}
	for entries := value.MapRange(); entries.Next(); {
		r.look(entries.Value(), true)
	}
}

func (r *result) lookInStruct(value reflect.Value, shared bool) {
	if value.CanInterface() { // it is not embedded without a name that JSON knows, as the fields of such a struct are
		r.add(value, shared)
	}
	for i := range value.NumField() {
		if field := value.Type().Field(i); field.IsExported() || field.Anonymous && field.Type.Kind() == reflect.Struct {
			r.look(value.Field(i), shared)
		}
	}
}

func (r *result) add(row reflect.Value, shared bool) {
	m := r.modelOf(row)
	if m == nil {
		if isFlat(row.Type()) {
			r.forms = append(r.forms, row)
		}
		return
	}
	r.models[m] = append(r.models[m], row)
	if !shared {
		r.copied[m] = append(r.copied[m], row)
	}
}

// mayHold reports whether there can be a version, with the name it has, in values of a type.
func mayHold(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Array, reflect.Map, reflect.Struct:
		return true
	default:
		return false
	}
}

// modelOf is the model of a struct, nil where it has no version. Nothing is parsed but what is met already, or has tags itself: GORM
// logs an error for what is none of its models.
func (r *result) modelOf(row reflect.Value) *model.Model {
	for _, m := range versioned(r.db) {
		if m.Schema.ModelType == row.Type() {
			return m
		}
	}
	stmt := &gorm.Statement{DB: r.db}
	if !hasTags(row.Type()) || stmt.Parse(reflect.New(row.Type()).Interface()) != nil {
		return nil
	}
	if m := model.OfSchema(r.db, stmt.Schema); m.Column != nil {
		return m
	}
	return nil
}

func hasTags(t reflect.Type) bool {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("gormlock") != "" {
			return true
		}
	}
	return false
}

// isFlat reports whether a struct has columns only, so that GORM can parse it.
func isFlat(t reflect.Type) bool {
	for i := range t.NumField() {
		field := t.Field(i)
		of := field.Type
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		scanned := scans(reflect.Zero(of))
		switch kind := of.Kind(); {
		case !field.IsExported() && !field.Anonymous || scanned:
		case field.Anonymous && field.Type.Kind() == reflect.Struct && isFlat(of):
		case kind == reflect.Slice && of.Elem().Kind() == reflect.Uint8:
		case mayHold(of) || kind == reflect.Chan || kind == reflect.Func:
			return false
		}
	}
	return true
}

// steps are what a rollback takes back, of all but the maps with structs in them.
func (r *result) steps() (steps []*Read) {
	for m, rows := range r.models {
		steps = append(steps, &Read{db: r.db, schema: m.Schema, rows: rows})
	}
	if all := versioned(r.db); len(all) > 0 && len(r.forms)+len(r.named) > 0 {
		steps = append(steps, &Read{db: r.db, rows: r.forms, others: r.named, models: all})
	}
	return steps
}

func unread(m *model.Model, rows []reflect.Value) {
	for _, row := range rows {
		m.Column.Write(row, m.Column.Unread())
	}
}

// forgetInMaps makes copies of what is in maps unread, and puts them back.
func (r *result) forgetInMaps() {
	for _, m := range r.maps {
		for _, key := range m.MapKeys() {
			entry := reflect.New(m.Type().Elem()).Elem()
			entry.Set(m.MapIndex(key))
			within := newResult(r.db)
			within.look(entry, true)
			for _, step := range within.steps() {
				step.Lose()
			}
			within.forgetInMaps()
			m.SetMapIndex(key, entry)
		}
	}
}
