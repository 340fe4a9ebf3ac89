package gormlock

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// structMemory is a struct as it was before a statement and as the statement left it. It is put back field by field: a
// column may be a pointer that GORM writes through, and what is no column is none of our business (V12).
type structMemory struct {
	before, after   reflect.Value
	beneath, behind []pointee
}

// pointee is what stands behind a pointer in a struct.
type pointee struct {
	field *schema.Field
	value any // the field: a pointer, or what stands behind embedded ones
	elem  reflect.Value
}

// keep copies row into the given place.
func (s *structMemory) keep(m *versionedModel, row, place reflect.Value) {
	place.Set(row)
	s.before = place
	s.beneath = pointees(m, row)
}

func (s *structMemory) leave(m *versionedModel, row reflect.Value) {
	if !s.before.IsValid() {
		return
	}
	s.after = reflect.New(row.Type()).Elem()
	s.after.Set(row)
	s.behind = pointees(m, row)
}

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

// restore makes the columns of row what they were before the statement.
func (s *structMemory) restore(m *versionedModel, row reflect.Value) {
	if !s.before.IsValid() {
		return
	}
	s.each(m, func(field *schema.Field, old pointee, _ pointee) {
		s.put(field, row, old)
	})
}

// undo does the same for the columns that the statement changed and nobody changed since. A struct that stands for
// another row by now is left alone.
func (s *structMemory) undo(m *versionedModel, row reflect.Value) {
	if !s.before.IsValid() || !s.after.IsValid() {
		return
	}
	for _, field := range m.schema.PrimaryFields {
		if !same(state(field, row), s.left(field)) {
			return
		}
	}
	s.each(m, func(field *schema.Field, old, left pointee) {
		if !same(old, left) && same(state(field, row), left) {
			s.put(field, row, old)
		}
	})
}

// left is the field as the statement left it.
func (s *structMemory) left(field *schema.Field) pointee {
	for _, p := range s.behind {
		if p.field == field {
			return p
		}
	}
	return pointee{field: field, value: placeOf(field, s.after).Interface()}
}

func (s *structMemory) each(m *versionedModel, visit func(field *schema.Field, old, left pointee)) {
	for i, field := range m.indirect {
		var left pointee
		if i < len(s.behind) {
			left = s.behind[i]
		}
		visit(field, s.beneath[i], left)
	}
	for _, field := range m.schema.FieldsByDBName {
		if field.FieldType.Kind() == reflect.Pointer || throughPointer(field) {
			continue
		}
		left := pointee{}
		if s.after.IsValid() {
			left.value = placeOf(field, s.after).Interface()
		}
		visit(field, pointee{value: placeOf(field, s.before).Interface()}, left)
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

func (s *structMemory) put(field *schema.Field, row reflect.Value, old pointee) {
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

// keepWritten records what the statement did to its structs, so that a rollback of the transaction takes it back (V1).
func (w *versionWrite) keepWritten(stmt *gorm.Statement) {
	w.done = true
	if transactionOf(stmt) == nil {
		return
	}
	for i := range w.rows {
		if w.rows[i].row.CanAddr() {
			w.rows[i].memory.leave(w.model, w.rows[i].row)
		}
	}
	if j := journalOf(stmt); j != nil && len(w.rows) > 0 {
		j.record(func() { w.undo(nil) })
	}
}

// undo takes back what a statement did to its structs that was rolled back later.
func (w *versionWrite) undo(*gorm.Statement) {
	if w.undone {
		return
	}
	w.undone = true
	for i := len(w.rows) - 1; i >= 0; i-- {
		w.rows[i].memory.undo(w.model, w.rows[i].row)
	}
}

// restore takes back what was done to the structs of a statement that wrote nothing.
func (w *versionWrite) restore(*gorm.Statement) {
	for i := len(w.rows) - 1; i >= 0; i-- {
		w.rows[i].memory.restore(w.model, w.rows[i].row)
	}
}
