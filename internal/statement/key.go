package statement

import (
	"database/sql/driver"
	"reflect"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
	"gorm.io/gorm/utils"
)

// SamePointer reports whether both are pointers to the same value.
func SamePointer(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.Kind() == reflect.Pointer && y.Kind() == reflect.Pointer && x.Type() == y.Type() && x.Pointer() == y.Pointer()
}

// KeyOf is the primary key of row, nil if all of it is zero. complete is false if a part of it is zero.
func KeyOf(stmt *gorm.Statement, s *schema.Schema, row reflect.Value) (key []any, complete bool) {
	key, complete = make([]any, len(s.PrimaryFields)), true
	some := false
	for i, field := range s.PrimaryFields {
		value, zero := field.ValueOf(stmt.Context, row)
		key[i] = value
		some = some || !zero
		complete = complete && !zero
	}
	if !some {
		return nil, false
	}
	return key, complete
}

// KeyName is a primary key as a string. Different keys have different names. A key has the same name whether the
// application made it or the server returned it.
func KeyName(key []any) string {
	if len(key) == 1 {
		return keyPart(key[0])
	}
	var b strings.Builder
	for _, value := range key {
		part := keyPart(value)
		_, _ = b.WriteString(strconv.Itoa(len(part)))
		_ = b.WriteByte(':')
		_, _ = b.WriteString(part)
	}
	return b.String()
}

// Sent is a value as a driver gets it. A nil pointer is NULL, unless its type is a Valuer that works without the pointed-to value.
func Sent(value any) (any, error) {
	valuer, is := value.(driver.Valuer)
	if !is {
		return value, nil
	}
	if v := reflect.ValueOf(value); v.Kind() == reflect.Pointer && v.IsNil() && v.Type().Elem().Implements(valuerType) {
		return nil, nil //nolint:nilnil // NULL
	}
	return valuer.Value()
}

// TextOf is the text of a value that is sent as text.
func TextOf(value any) (text string, is bool) {
	sent, err := Sent(value)
	v := reflect.ValueOf(sent)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if err != nil || v.Kind() != reflect.String {
		return "", false
	}
	return v.String(), true
}

var valuerType = reflect.TypeFor[driver.Valuer]()

// keyPart is a value as a string. A pointer gives the same string as its value, and NULL another one than zero.
func keyPart(value any) string {
	value, _ = Sent(value)
	switch t := value.(type) {
	case time.Time:
		return strconv.FormatInt(t.UnixMicro(), 10)
	case *time.Time:
		if t != nil {
			return strconv.FormatInt(t.UnixMicro(), 10)
		}
	}
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		return keyPart(v.Elem().Interface())
	}
	if v.CanInt() && v.Int() == 0 || v.CanUint() && v.Uint() == 0 {
		return "0" // GORM gives "nil", as for NULL
	}
	return utils.ToStringKey(value)
}
