package once

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Stored returns a result as it is stored. One of which JSON would keep nothing, a struct whose fields are all unexported or
// left out, is an error: every later call would return an empty one.
func Stored(key string, result any) ([]byte, error) {
	stored, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("gormlock: once %q: the result cannot be stored: %w", key, err)
	}
	value := reflect.ValueOf(result)
	empty, found := emptied(value)
	if !found && value.IsValid() && value.Kind() == reflect.Struct && isEmptied(value) {
		empty, found = value.Type(), true // a zero one too, before the first that is not
	}
	if found {
		return nil, fmt.Errorf("gormlock: once %q: the result cannot be stored: %s has no field that JSON stores: export them, or give it a MarshalJSON", key, empty)
	}
	return stored, nil
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// emptied finds a struct in v that is not zero and of which JSON keeps nothing.
func emptied(v reflect.Value) (reflect.Type, bool) {
	if !v.IsValid() || v.IsZero() || marshalsItself(v) {
		return nil, false
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return emptied(v.Elem())
	case reflect.Struct:
		if isEmptied(v) {
			return v.Type(), true
		}
		for i := range v.NumField() {
			if field := v.Type().Field(i); isKept(field) {
				if t, found := emptied(v.Field(i)); found {
					return t, true
				}
			}
		}
	case reflect.Slice, reflect.Array:
		for i := 0; i < v.Len() && !isPlain(v.Type().Elem().Kind()); i++ {
			if t, found := emptied(v.Index(i)); found {
				return t, true
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if t, found := emptied(v.MapIndex(key)); found {
				return t, true
			}
		}
	default:
	}
	return nil, false
}

// isEmptied reports whether a struct has fields, and JSON keeps none of them.
func isEmptied(v reflect.Value) bool {
	return v.NumField() > 0 && !marshalsItself(v) && !keepsAny(v.Type())
}

func marshalsItself(v reflect.Value) bool {
	t := v.Type()
	if v.CanAddr() && v.Kind() != reflect.Pointer {
		t = reflect.PointerTo(t)
	}
	return t.Implements(marshaler) || t.Implements(textMarshaler)
}

// keepsAny reports whether JSON keeps a field of the struct, one of its embedded structs' too.
func keepsAny(t reflect.Type) bool {
	for i := range t.NumField() {
		field := t.Field(i)
		if embedded := embeddedStruct(field); embedded != nil {
			if keepsAny(embedded) {
				return true
			}
		} else if isKept(field) {
			return true
		}
	}
	return false
}

func isKept(field reflect.StructField) bool {
	return field.Tag.Get("json") != "-" && (field.IsExported() || embeddedStruct(field) != nil)
}

// embeddedStruct is the struct whose fields count as those of the one it is embedded in, nil where field is none.
func embeddedStruct(field reflect.StructField) reflect.Type {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	t := field.Type
	if t.Kind() == reflect.Pointer && field.IsExported() {
		t = t.Elem()
	}
	if !field.Anonymous || name != "" || t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(marshaler) || reflect.PointerTo(t).Implements(textMarshaler) {
		return nil
	}
	return t
}

func isPlain(k reflect.Kind) bool { return k <= reflect.Complex128 || k == reflect.String }
