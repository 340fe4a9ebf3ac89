package once

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Stored returns the text of a result that is stored. If JSON would not keep the result, that is an error, because later calls would return
// another one.
func Stored(key string, result any) ([]byte, error) {
	stored, lost, err := asJSON(result)
	if err != nil {
		return nil, fmt.Errorf("gormlock: once %q: the result cannot be stored: %w", key, err)
	}
	if lost != "" {
		return nil, fmt.Errorf("gormlock: once %q: the result cannot be stored: %s", key, lost)
	}
	return stored, nil
}

// asJSON returns the JSON of a value, and in lost what JSON does not keep: a struct if all its fields are unexported or left out, or
// a text that is not UTF-8.
func asJSON(value any) (text []byte, lost string, err error) {
	if text, err = json.Marshal(value); err != nil {
		return nil, "", err
	}
	v := reflect.ValueOf(value)
	if v.IsValid() && v.Kind() == reflect.Struct && isEmptied(v) {
		return text, keepsNothing(v.Type()), nil // even if it is zero: the next one may not be
	}
	return text, lostOf(v), nil
}

func keepsNothing(t reflect.Type) string {
	return t.String() + " has no field that JSON stores: export them, or give it a MarshalJSON"
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// lostOf finds something in v that is not zero and that JSON loses.
func lostOf(v reflect.Value) string {
	if !v.IsValid() || v.IsZero() || marshalsItself(v) {
		return ""
	}
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return fmt.Sprintf("the text %q is not UTF-8: give it as []byte", v.String())
		}
	case reflect.Pointer, reflect.Interface:
		return lostOf(v.Elem())
	case reflect.Struct:
		if isEmptied(v) {
			return keepsNothing(v.Type())
		}
		for i := range v.NumField() {
			if field := v.Type().Field(i); isKept(field) {
				if lost := lostOf(v.Field(i)); lost != "" {
					return lost
				}
			}
		}
	case reflect.Slice, reflect.Array:
		for i := 0; i < v.Len() && v.Type().Elem().Kind() > reflect.Complex128; i++ {
			if lost := lostOf(v.Index(i)); lost != "" {
				return lost
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if lost := lostOf(key) + lostOf(v.MapIndex(key)); lost != "" {
				return lost
			}
		}
	default:
	}
	return ""
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

// keepsAny reports whether JSON keeps any field of the struct or of its embedded structs.
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

// embeddedStruct is the type of an embedded struct that JSON writes as fields of the outer struct, nil if field is none.
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
