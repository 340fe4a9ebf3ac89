package column

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"time"
)

// Of makes a version from a value that a caller gave, in a map or to ExpectVersion.
func (c *Version) Of(value any) (Value, error) {
	if value == nil {
		return Value{Null: true}, nil
	}
	if v, ok := value.(Value); ok {
		return v, nil
	}
	given := Version{Field: c.Field}
	v := reflect.ValueOf(c.fromJSON(value))
	if !given.shapedAs(v.Type()) || (given.IsTemporal()) != (c.IsTemporal()) {
		return Value{}, fmt.Errorf("gormlock: %s.%s: %v (%T) is not a version, give one of type %s", c.Field.Schema.Name, c.Field.Name, value, value, c.Field.FieldType)
	}
	read := given.value(v)
	if given.isWrapped(v) || c.IsSystem() && (read.N < 0 || read.N > math.MaxUint32) {
		return Value{}, fmt.Errorf("gormlock: %s.%s: %v (%T) is not a version: no row can have it", c.Field.Schema.Name, c.Field.Name, reflect.Indirect(v), value)
	}
	return read, nil
}

// isWrapped reports whether v is an unsigned number too large for any column. In a [Value] it would become negative.
func (c *Version) isWrapped(v reflect.Value) bool {
	if v = reflect.Indirect(v); c.shape == nullableVersion {
		v = v.Field(0)
	}
	return v.CanUint() && v.Uint() > math.MaxInt64
}

// fromJSON converts a value that JSON has read (a float64, a json.Number or the text of a time) to a value that a field holds. Any
// other value, and a number that is not whole, stays as it is.
func (c *Version) fromJSON(value any) any {
	switch given := value.(type) {
	case float64:
		if whole := int64(given); !c.IsTemporal() && math.Abs(given) < 1<<53 && float64(whole) == given {
			return whole
		}
	case json.Number:
		if whole, err := given.Int64(); !c.IsTemporal() && err == nil {
			return whole
		}
	case string:
		if at, err := time.Parse(time.RFC3339Nano, given); c.IsTemporal() && err == nil {
			return at
		}
	}
	return value
}
