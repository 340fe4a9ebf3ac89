package gormlock

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// structMemory is the structs of a statement as they were before it and as it left them. They are put back field by
// field: a column may be a pointer that GORM writes through, and what is no column is none of our business.
type structMemory struct {
	model  *versionedModel
	target reflect.Value // the struct, or the slice that holds them
	count  int

	before, after *structCopies
}

// structCopies are the structs at one moment.
type structCopies struct {
	structs reflect.Value // one, or a slice of them
	behind  [][]pointee   // what stood behind their pointers; none where the model has none
}

// pointee is what stands behind a pointer in a struct.
type pointee struct {
	field *schema.Field
	value any // the field: a pointer, or what stands behind embedded ones
	elem  reflect.Value
}

// batch reports whether the structs are in a slice.
func (s *structMemory) batch() bool {
	return s.target.Kind() == reflect.Slice || s.target.Kind() == reflect.Array
}

// find takes the structs that value is or holds, if they are of the model, and reports whether an element is nil.
func (s *structMemory) find(m *versionedModel, value any) (found, hole bool) {
	target := reflect.ValueOf(value)
	for target.Kind() == reflect.Pointer || target.Kind() == reflect.Interface {
		target = target.Elem()
	}
	kept := structMemory{model: m, target: target}
	switch target.Kind() {
	case reflect.Struct:
		if target.Type() != m.schema.ModelType {
			return false, false
		}
		kept.count = 1
	case reflect.Slice, reflect.Array:
		kept.count = target.Len()
		if target.Kind() == reflect.Slice {
			kept.target = target.Slice(0, kept.count) // the caller may go on to cut his
		}
		for i := 0; i < kept.count && target.Type().Elem() != m.schema.ModelType; i++ {
			row := kept.row(i)
			if hole = !row.IsValid(); hole || row.Type() != m.schema.ModelType {
				return false, hole
			}
		}
	default:
		return false, false
	}
	*s = kept
	return true, false
}

// keep copies the structs as they are.
func (s *structMemory) keep() { s.before = s.copies() }

// row is the struct with this number.
func (s *structMemory) row(i int) reflect.Value {
	if !s.batch() {
		return s.target
	}
	row := s.target.Index(i)
	for row.Kind() == reflect.Pointer || row.Kind() == reflect.Interface {
		row = row.Elem()
	}
	return row
}

// copies are copies of all structs; none of a struct that was handed over by value, which memory cannot follow.
func (s *structMemory) copies() *structCopies {
	if s.count == 0 || !s.row(0).CanAddr() {
		return nil
	}
	var all reflect.Value
	switch {
	case !s.batch():
		all = reflect.New(s.model.schema.ModelType).Elem()
		all.Set(s.target)
	case s.target.Type().Elem() == s.model.schema.ModelType:
		all = reflect.MakeSlice(reflect.SliceOf(s.model.schema.ModelType), s.count, s.count)
		reflect.Copy(all, s.target)
	default:
		all = reflect.MakeSlice(reflect.SliceOf(s.model.schema.ModelType), s.count, s.count)
		for i := range s.count {
			all.Index(i).Set(s.row(i))
		}
	}
	if len(s.model.indirect) == 0 {
		return &structCopies{structs: all}
	}
	behind := make([][]pointee, s.count)
	for i := range behind {
		behind[i] = pointees(s.model, s.row(i))
	}
	return &structCopies{all, behind}
}

// was is the struct with this number as it was before the statement; not valid where that is not known.
func (s *structMemory) was(i int) reflect.Value { return s.of(s.before, i) }

func (s *structMemory) of(copies *structCopies, i int) reflect.Value {
	switch {
	case copies == nil:
		return reflect.Value{}
	case s.batch():
		return copies.structs.Index(i)
	}
	return copies.structs
}

// leave keeps the structs as the statement left them.
func (s *structMemory) leave() { s.after = s.copies() }

func pointees(m *versionedModel, row reflect.Value) []pointee {
	if len(m.indirect) == 0 {
		return nil
	}
	all := make([]pointee, len(m.indirect))
	for i, field := range m.indirect {
		all[i] = pointee{field: field}
		place := placeOf(field, row)
		if !place.IsValid() {
			continue
		}
		all[i].value = place.Interface()
		if place.Kind() == reflect.Pointer && !place.IsNil() {
			all[i].elem = reflect.New(place.Type().Elem()).Elem()
			all[i].elem.Set(place.Elem())
		}
	}
	return all
}

// placeOf is the field in row; not valid where an embedded pointer on the way is nil.
func placeOf(field *schema.Field, row reflect.Value) reflect.Value {
	for n, i := range field.StructField.Index {
		if i >= 0 {
			row = row.Field(i)
			continue
		}
		row = row.Field(-i - 1)
		if n == len(field.StructField.Index)-1 {
			break
		}
		if row.IsNil() {
			return reflect.Value{}
		}
		row = row.Elem()
	}
	return row
}

// restore makes the columns of all structs what they were before the statement.
func (s *structMemory) restore() {
	for i := s.count - 1; i >= 0; i-- {
		s.restoreRow(i)
	}
}

func (s *structMemory) restoreRow(i int) {
	if s.before != nil {
		row := s.row(i)
		s.each(i, func(field *schema.Field, old pointee, _ pointee) { put(field, row, old) })
	}
}

// undo does the same for the columns that the statement changed and nobody changed since. A struct that stands for
// another row by now is left alone.
func (s *structMemory) undo() {
	if s.before == nil || s.after == nil {
		return
	}
	var moved map[string]reflect.Value
	for i := s.count - 1; i >= 0; i-- {
		row := s.row(i)
		if !s.standsFor(row, i) {
			if moved == nil {
				moved = s.byKey()
			}
			if row = moved[s.keyIn(s.of(s.after, i))]; !s.standsFor(row, i) {
				continue
			}
		}
		s.each(i, func(field *schema.Field, old, left pointee) {
			if !same(old, left) && same(state(field, row), left) {
				put(field, row, old)
			}
		})
	}
}

// each visits the columns of a struct, as they were before the statement and as it left them.
func (s *structMemory) each(i int, visit func(field *schema.Field, old, left pointee)) {
	for n, field := range s.model.indirect {
		var left pointee
		if s.after != nil {
			left = s.after.behind[i][n]
		}
		visit(field, s.before.behind[i][n], left)
	}
	before, after := s.was(i), s.of(s.after, i)
	for _, field := range s.model.schema.FieldsByDBName {
		if field.FieldType.Kind() == reflect.Pointer || throughPointer(field) {
			continue
		}
		var left pointee
		if after.IsValid() {
			left.value = placeOf(field, after).Interface()
		}
		visit(field, pointee{value: placeOf(field, before).Interface()}, left)
	}
}

// state is the field as it is now.
func state(field *schema.Field, row reflect.Value) pointee {
	place := placeOf(field, row)
	if !place.IsValid() {
		return pointee{}
	}
	p := pointee{value: place.Interface()}
	if place.Kind() == reflect.Pointer && !place.IsNil() {
		p.elem = place.Elem()
	}
	return p
}

func same(a, b pointee) bool {
	if a.elem.IsValid() != b.elem.IsValid() {
		return false
	}
	if a.elem.IsValid() {
		return a.value == b.value && reflect.DeepEqual(a.elem.Interface(), b.elem.Interface())
	}
	return reflect.DeepEqual(a.value, b.value)
}

func put(field *schema.Field, row reflect.Value, old pointee) {
	place := placeOf(field, row)
	if !place.IsValid() || !place.CanSet() {
		return
	}
	if old.value == nil {
		place.SetZero()
		return
	}
	place.Set(reflect.ValueOf(old.value))
	if old.elem.IsValid() {
		place.Elem().Set(old.elem)
	}
}

// keepWritten records what the statement did to its structs, so that a rollback of the transaction takes it back.
func (w *versionWrite) keepWritten(stmt *gorm.Statement) {
	w.done = true
	if transactionOf(stmt) == nil {
		return
	}
	w.memory.leave()
	if j := journalOf(stmt); j != nil && !w.undone {
		if w.model.column != nil {
			j.wrote(w)
		}
		j.record(w.undo)
		if w.op != opCreate && len(w.rows) == 0 && asksForRows(stmt) {
			keepRowsRead(stmt.DB, stmt.ReflectValue) // a bulk statement that returns rows reads them
		}
	}
}

// undo takes back, once, what a statement did to its structs that was rolled back.
func (w *versionWrite) undo() {
	if !w.undone {
		w.undone = true
		w.memory.undo()
	}
}
