package memory

import (
	"math"
	"reflect"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
)

// pointee is a field of a struct and the value behind its pointer.
type pointee struct {
	field *schema.Field
	value any // the value of the field: a pointer, or the field in an embedded struct
	elem  reflect.Value
}

func pointees(m *model.Model, row reflect.Value) []pointee {
	if len(m.Indirect) == 0 {
		return nil
	}
	all := make([]pointee, len(m.Indirect))
	for i, field := range m.Indirect {
		all[i] = pointee{field: field}
		place := statement.Place(field, row)
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

// state returns the current value of the field.
func state(field *schema.Field, row reflect.Value) pointee {
	place := statement.Place(field, row)
	if !place.IsValid() {
		return pointee{}
	}
	p := pointee{value: place.Interface()}
	if place.Kind() == reflect.Pointer && !place.IsNil() {
		p.elem = place.Elem()
	}
	return p
}

// holds reports whether a field holds the value that the statement left in it, behind any pointer: the caller may have replaced the pointer.
func holds(now, left pointee) bool {
	switch {
	case now.elem.IsValid() != left.elem.IsValid():
		return false
	case now.elem.IsValid():
		return equal(now.elem.Interface(), left.elem.Interface())
	}
	return equal(now.value, left.value)
}

// behind is p with a new pointer, if nothing may be written through the old one because others may have it: the caller has replaced the pointer
// that the statement left; or the statement replaced the caller's, and another value is behind that by now.
func (p pointee) behind(now, left pointee) pointee {
	if !p.elem.IsValid() || now.value == left.value && (left.value == p.value || equal(reflect.ValueOf(p.value).Elem().Interface(), p.elem.Interface())) {
		return p
	}
	own := reflect.New(p.elem.Type())
	own.Elem().Set(p.elem)
	p.value = own.Interface()
	return p
}

// equal is DeepEqual, except that NaN equals NaN.
func equal(a, b any) bool {
	return reflect.DeepEqual(a, b) || isNaN(a) && isNaN(b)
}

func isNaN(value any) bool {
	v := reflect.ValueOf(value)
	return v.CanFloat() && math.IsNaN(v.Float())
}

func put(field *schema.Field, row reflect.Value, old pointee) {
	place := statement.Place(field, row)
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
