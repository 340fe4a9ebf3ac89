package statement

import (
	"context"
	"database/sql/driver"
	"math"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// Holds reports whether a struct holds in a field exactly the value that an update sends for the column. GORM assigns the sent
// value to the struct too. But it reads some values differently from the server, and ignores others without an
// error.
func Holds(ctx context.Context, field *schema.Field, row reflect.Value, value any) bool {
	place := Place(field, row)
	if same, plain := samePlain(field, place, value); plain {
		return same
	}
	if _, computes := value.(gorm.Valuer); computes || isCode(value) {
		// GORM sends what the struct holds in the same way
		return place.IsValid() && field.Serializer == nil && reflect.TypeOf(value) == place.Type() && reflect.DeepEqual(place.Interface(), value)
	}
	sent := reflect.ValueOf(value)
	if !place.IsValid() {
		return isNull(sent)
	}
	if field.Serializer != nil {
		own, _ := field.ValueOf(ctx, row)
		place = reflect.ValueOf(own)
	} else if sent.IsValid() && sent.Type() == place.Type() && sameKind(place, sent) {
		return true
	}
	if sent = asSent(sent); !sent.IsValid() {
		return Place(field, row).IsZero() // NULL is read as zero
	}
	place = asSent(place)
	return place.IsValid() && sameSent(place, sent)
}

// samePlain compares a value with a field if both have basic Go types, as most do. Otherwise plain is false.
func samePlain(field *schema.Field, place reflect.Value, value any) (same, plain bool) {
	if field.Serializer != nil || !place.IsValid() || place.Type().PkgPath() != "" {
		return false, false
	}
	switch sent := value.(type) {
	case int:
		return place.CanInt() && place.Int() == int64(sent), place.CanInt()
	case int64:
		return place.CanInt() && place.Int() == sent, place.CanInt()
	case string:
		return place.Kind() == reflect.String && place.String() == sent, place.Kind() == reflect.String
	case bool:
		return place.Kind() == reflect.Bool && place.Bool() == sent, place.Kind() == reflect.Bool
	}
	return false, false
}

// isCode reports whether a value is SQL for the server, and not a value.
func isCode(value any) bool {
	_, sends := value.(driver.Valuer)
	return !sends && Computed(value)
}

func isNull(value reflect.Value) bool {
	return !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil()
}

// asSent is a value as the driver gets it. It is not valid for NULL.
func asSent(value reflect.Value) reflect.Value {
	for !isNull(value) {
		if _, is := value.Interface().(driver.Valuer); is && value.Type() != TimeType {
			made, err := Sent(value.Interface())
			if err != nil {
				return reflect.Value{}
			}
			return reflect.ValueOf(made)
		}
		if value.Kind() != reflect.Pointer {
			return value
		}
		value = value.Elem()
	}
	return reflect.Value{}
}

// sameKind reports whether two values of one type are the same.
func sameKind(a, b reflect.Value) bool {
	switch {
	case a.CanInt():
		return a.Int() == b.Int()
	case a.Kind() == reflect.String:
		return a.String() == b.String()
	case a.Kind() == reflect.Bool:
		return a.Bool() == b.Bool()
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// sameSent reports whether two values are the same to the server. The types of numbers do not matter.
func sameSent(a, b reflect.Value) bool {
	switch {
	case isNumber(a) && isNumber(b):
		return sameNumber(a, b)
	case a.Kind() == reflect.String && b.Kind() == reflect.String:
		return a.String() == b.String()
	case a.Kind() == reflect.Bool && b.Kind() == reflect.Bool:
		return a.Bool() == b.Bool()
	case a.Type() != b.Type():
		return false
	}
	return reflect.DeepEqual(a.Interface(), b.Interface()) // times with their zone: a column without a zone stores what the clock shows there
}

func isNumber(value reflect.Value) bool { return value.CanInt() || value.CanUint() || value.CanFloat() }

// exactly is the number up to which a float64 holds every whole number.
const exactly = 1 << 53

func sameNumber(a, b reflect.Value) bool {
	if a.CanFloat() != b.CanFloat() {
		if b.CanFloat() {
			a, b = b, a
		}
		whole := a.Float()
		return whole == math.Trunc(whole) && math.Abs(whole) < exactly && sameNumber(reflect.ValueOf(int64(whole)), b)
	}
	switch {
	case a.CanFloat():
		return a.Float() == b.Float() && (a.Kind() == b.Kind() || float64(float32(a.Float())) == a.Float() && a.Float() == math.Trunc(a.Float()))
	case a.CanInt() && b.CanInt():
		return a.Int() == b.Int()
	case a.CanUint() && b.CanUint():
		return a.Uint() == b.Uint()
	case a.CanInt():
		return a.Int() >= 0 && uint64(a.Int()) == b.Uint() //nolint:gosec // not negative
	}
	return b.Int() >= 0 && uint64(b.Int()) == a.Uint() //nolint:gosec // not negative
}
