package reading

import (
	"reflect"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// KeepResult notes that a function returns what is in dest, a pointer, and that it was decoded from text that the open transaction has stored. A
// rollback makes unread what the caller then shares with it: everything behind pointers, in slices and in maps. It cannot reach a struct that the
// caller gets by value. So such a struct of a model is unread at once, like the copies of gorm.G. If gormlock does not see the end of the
// transaction, structs written or read in it were unread before they became text.
func KeepResult(db *gorm.DB, dest any) {
	j := journal.Of(db.Statement)
	if j == nil || j.IsOver() || install.Of(db).WithoutVersions { // IsOver: text of a committed transaction
		return
	}
	found := newResult(&gorm.DB{Config: db.Config})
	found.look(reflect.ValueOf(dest).Elem(), false)
	for _, step := range found.steps() {
		j.Keep(step)
	}
	for m, copies := range found.copied {
		unread(m, copies)
	}
	for _, b := range found.boxes {
		if b.shared {
			j.Record(func() { b.forget(db) })
		} else {
			b.forget(db)
		}
	}
}

// result collects what may carry versions in a returned value.
type result struct {
	db     *gorm.DB
	models map[*model.Model][]reflect.Value // structs
	copied map[*model.Model][]reflect.Value // structs of which the caller gets copies
	forms  []reflect.Value                  // structs without a model whose version an update could use
	named  []reflect.Value                  // maps from names to values
	boxes  []box
	seen   map[uintptr]bool
}

// box is an interface or a map that holds structs or arrays. They cannot be set in place.
type box struct {
	place  reflect.Value
	shared bool
}

func newResult(db *gorm.DB) *result {
	return &result{db: db, models: map[*model.Model][]reflect.Value{}, copied: map[*model.Model][]reflect.Value{}, seen: map[uintptr]bool{}}
}

// look finds what is in a value. shared means that the caller gets no copy of it.
func (r *result) look(value reflect.Value, shared bool) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() && !r.seen[value.Pointer()] {
			r.seen[value.Pointer()] = true
			r.look(value.Elem(), true)
		}
	case reflect.Interface:
		if isBoxed(value) {
			r.boxes = append(r.boxes, box{value, shared})
			return
		}
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
	if value.Len() == 0 || !mayHold(value.Type().Elem()) {
		return
	}
	if value.Type() == reflect.TypeFor[map[string]any]() {
		r.named = append(r.named, value)
	}
	boxed := false
	for entries := value.MapRange(); entries.Next(); {
		if isBoxed(entries.Value()) {
			boxed = true
		} else {
			r.look(entries.Value(), true)
		}
	}
	if boxed {
		r.boxes = append(r.boxes, box{value, true})
	}
}

// isBoxed reports whether a map or an interface holds a struct or an array itself: then it can only be replaced.
func isBoxed(value reflect.Value) bool {
	for value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	return value.Kind() == reflect.Struct || value.Kind() == reflect.Array
}

func (r *result) lookInStruct(value reflect.Value, shared bool) {
	r.add(value, shared)
	for i := range value.NumField() {
		r.look(reached(value.Field(i)), shared)
	}
}

// reached returns a field so that it can be read and set, exported or not. Generic Option and Result types keep their value in an unexported field,
// and have MarshalJSON and UnmarshalJSON.
func reached(field reflect.Value) reflect.Value {
	if field.CanInterface() || !field.CanAddr() {
		return field
	}
	return reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem()
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

// mayHold reports whether values of a type can contain a version, by the names of their fields.
func mayHold(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Array, reflect.Map, reflect.Struct:
		return true
	default:
		return false
	}
}

// modelOf is the model of a struct, or nil if it has no version. It only parses types that GORM has met, or that have tags themselves, because GORM
// logs an error for types that are not models.
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

// isFlat reports whether a struct only has columns, so that GORM can parse it.
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

// steps are the steps of a rollback for everything except boxes.
func (r *result) steps() (steps []*Read) {
	for m, rows := range r.models {
		step := &Read{db: r.db, schema: m.Schema, rows: rows}
		step.noted = step.note(true)
		steps = append(steps, step)
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

// forget makes the content of a box unread.
func (b box) forget(db *gorm.DB) {
	b.replace(func(entry reflect.Value) {
		within := newResult(&gorm.DB{Config: db.Config})
		within.look(entry, true)
		for _, step := range within.steps() {
			step.Lose()
		}
		for _, inner := range within.boxes {
			inner.forget(db)
		}
	})
}

// replace replaces the structs and arrays in a box by copies that change can set.
func (b box) replace(change func(entry reflect.Value)) {
	if b.place.Kind() == reflect.Interface {
		if isBoxed(b.place) { // it may hold something else by now
			b.place.Set(changed(b.place.Elem(), change))
		}
		return
	}
	for _, key := range b.place.MapKeys() {
		if entry := b.place.MapIndex(key); isBoxed(entry) {
			b.place.SetMapIndex(key, changed(entry, change))
		}
	}
}

// changed returns a copy of a value that change has set.
func changed(value reflect.Value, change func(entry reflect.Value)) reflect.Value {
	for value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	value = statement.CopyOf(value)
	change(value)
	return value
}
