// Package absent looks at what a caller has given: whether it is there at all.
package absent

import (
	"fmt"
	"reflect"
)

// Is reports whether v is nil, or holds a nil pointer or function.
func Is(v any) bool {
	if v == nil {
		return true
	}
	switch of := reflect.ValueOf(v); of.Kind() {
	case reflect.Pointer, reflect.Func:
		return of.IsNil()
	default:
		return false
	}
}

// Type names the type of v in an error, and says whether v is nil.
func Type(v any) string {
	switch {
	case v == nil:
		return "nil"
	case Is(v):
		return fmt.Sprintf("a nil %T", v)
	}
	return fmt.Sprintf("%T", v)
}
