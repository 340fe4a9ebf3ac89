package statement

import (
	"reflect"
	"time"
)

// SameValue reports whether two structs hold the same value in a field. Times are compared at the precision of the column.
func SameValue(a, b any, tick time.Duration) bool {
	x, y := reflect.Indirect(reflect.ValueOf(a)), reflect.Indirect(reflect.ValueOf(b))
	if x.IsValid() && y.IsValid() {
		s, isTime := x.Interface().(time.Time)
		t, both := y.Interface().(time.Time)
		if isTime && both {
			return s.Sub(t).Abs() < tick
		}
	}
	return reflect.DeepEqual(a, b)
}

// IsSame reports whether two pointers or slices lead to the same structs.
func IsSame(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return SamePointer(a, b) || x.Kind() == reflect.Slice && y.Kind() == reflect.Slice && x.Type() == y.Type() && x.Pointer() == y.Pointer()
}
