package memory

import (
	"database/sql"
	"database/sql/driver"
	"encoding"
	"reflect"

	"github.com/gormlock/gormlock/internal/statement"
)

// Own is a copy that shares no map, slice or pointer with the original that programs can change. It stays the same when the original changes.
func Own(value reflect.Value) reflect.Value {
	own := reflect.New(value.Type()).Elem()
	own.Set(owner{}.own(value))
	return own
}

// owner remembers the pointers that it has followed, because values may point back to themselves.
type owner map[pointerTo]reflect.Value

type pointerTo struct {
	is reflect.Type
	at uintptr
}

func (o owner) own(value reflect.Value) reflect.Value {
	if !leadsOn(value.Type()) {
		return value
	}
	own := reflect.New(value.Type()).Elem()
	own.Set(value)
	switch value.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		if value.IsNil() {
			return own
		}
	}
	switch value.Kind() {
	case reflect.Pointer:
		is := pointerTo{value.Type(), value.Pointer()}
		if found, ok := o[is]; ok {
			return found
		}
		own.Set(reflect.New(value.Type().Elem()))
		o[is] = own
		own.Elem().Set(o.own(value.Elem()))
	case reflect.Map:
		own.Set(reflect.MakeMapWithSize(value.Type(), value.Len()))
		for each := value.MapRange(); each.Next(); {
			own.SetMapIndex(each.Key(), o.own(each.Value()))
		}
	case reflect.Slice:
		own.Set(reflect.MakeSlice(value.Type(), value.Len(), value.Len()))
		for i := range value.Len() {
			own.Index(i).Set(o.own(value.Index(i)))
		}
	case reflect.Array:
		for i := range value.Len() {
			own.Index(i).Set(o.own(value.Index(i)))
		}
	case reflect.Interface:
		own.Set(o.own(value.Elem()))
	case reflect.Struct:
		o.ownFields(own)
	}
	return own
}

// ownFields gives a struct its own fields. If only the package of its type can reach a field, the struct is made again from its text or bytes, if
// that gives an equal value.
func (o owner) ownFields(row reflect.Value) {
	for i := range row.NumField() {
		switch field := row.Type().Field(i); {
		case !leadsOn(field.Type):
		case field.IsExported():
			row.Field(i).Set(o.own(row.Field(i)))
		default:
			if made := reflect.New(row.Type()); remade(row.Addr().Interface(), made.Interface()) && reflect.DeepEqual(made.Elem().Interface(), row.Interface()) {
				row.Set(made.Elem())
				return
			}
		}
	}
}

// remade makes a value again, from its text, its bytes, or the value that a column would hold.
func remade(from, to any) bool {
	if source, ok := from.(encoding.TextMarshaler); ok {
		if target, ok := to.(encoding.TextUnmarshaler); ok {
			text, err := source.MarshalText()
			return err == nil && target.UnmarshalText(text) == nil
		}
	}
	if source, ok := from.(encoding.BinaryMarshaler); ok {
		if target, ok := to.(encoding.BinaryUnmarshaler); ok {
			bytes, err := source.MarshalBinary()
			return err == nil && target.UnmarshalBinary(bytes) == nil
		}
	}
	if source, ok := from.(driver.Valuer); ok {
		if target, ok := to.(sql.Scanner); ok {
			value, err := source.Value()
			return err == nil && target.Scan(value) == nil
		}
	}
	return false
}

// leadsOn reports whether values of a type can lead to shared memory.
func leadsOn(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return true
	case reflect.Array:
		return leadsOn(t.Elem())
	case reflect.Struct:
		for i := 0; t != statement.TimeType && i < t.NumField(); i++ {
			if leadsOn(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
