package merge

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/statement"
)

// adopt copies the row into mine, except the columns that are to be written. Afterwards the values behind pointers belong
// to mine alone. So if a hook changes them in place, neither base, nor the row, nor the kept copy of mine changes.
func (s *save) adopt(stmt *gorm.Statement, theirs reflect.Value, mine map[string]bool) {
	s.ownEmbedded()
	for name, field := range s.model.Schema.FieldsByDBName {
		from, to := statement.Place(field, theirs), statement.Place(field, s.mine)
		if !field.Readable || mine[name] {
			from = to
		}
		switch {
		case from.IsValid():
			field.ReflectValueOf(stmt.Context, s.mine).Set(memory.Own(from))
		case to.IsValid():
			to.SetZero()
		}
	}
}

// ownEmbedded gives mine its own embedded structs where it has pointers to them, because base may have the same pointers.
func (s *save) ownEmbedded() {
	s.eachEmbedded(func(place reflect.Value) {
		if !place.IsNil() {
			own := reflect.New(place.Type().Elem())
			own.Elem().Set(place.Elem())
			place.Set(own)
		}
	})
}

// eachEmbedded visits the pointers to embedded structs in mine, the outer ones first.
func (s *save) eachEmbedded(visit func(place reflect.Value)) {
	known := map[string]bool{}
	for _, field := range s.model.Schema.FieldsByDBName {
		for n, i := range field.StructField.Index[:len(field.StructField.Index)-1] {
			way := fmt.Sprint(field.StructField.Index[:n+1])
			if i >= 0 || known[way] {
				continue
			}
			known[way] = true
			embedded := *field
			embedded.StructField.Index = field.StructField.Index[:n+1]
			if place := statement.Place(&embedded, s.mine); place.IsValid() {
				visit(place)
			}
		}
	}
}

// pointer is a pointer to an embedded struct, and its old value.
type pointer struct{ place, was reflect.Value }

// embedded are the pointers to embedded structs as they are.
func (s *save) embedded() []pointer {
	var all []pointer
	s.eachEmbedded(func(place reflect.Value) {
		was := reflect.New(place.Type()).Elem()
		was.Set(place)
		all = append(all, pointer{place, was})
	})
	return all
}

// putBack restores the old pointer, if its struct has its old value.
func (p pointer) putBack() {
	if alike(p.was, p.place) {
		p.place.Set(p.was)
	}
}

// alike is DeepEqual, except that an empty struct equals a missing one.
func alike(a, b reflect.Value) bool {
	switch {
	case isEmpty(a) || isEmpty(b):
		return isEmpty(a) && isEmpty(b)
	case a.Kind() == reflect.Pointer && a.Type().Elem().Kind() == reflect.Struct:
		a, b = a.Elem(), b.Elem()
		for i := range a.NumField() {
			if !a.Field(i).CanInterface() {
				return reflect.DeepEqual(a.Interface(), b.Interface())
			}
			if !alike(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// isEmpty reports whether a value is zero, or leads only to empty structs.
func isEmpty(value reflect.Value) bool {
	if value.IsZero() || value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return value.IsZero()
	}
	value = value.Elem()
	for i := range value.NumField() {
		if !isEmpty(value.Field(i)) {
			return false
		}
	}
	return true
}
