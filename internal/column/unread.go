package column

import (
	"reflect"
	"time"
)

// BeforeBump is the version that a bump made v of, and none where that is not known.
func (c *Version) BeforeBump(v Value) Value {
	if !c.IsInteger() {
		return Value{Null: !c.IsBare()}
	}
	return Value{N: v.N - 1}
}

// Unread is the version of a struct that stands for a row and was not read from it, or is not known to have what the row has. No row has it. It is
// not zero: a zero struct may be new, and one that gormlock could not follow may not.
func (c *Version) Unread() Value {
	kind := c.Field.IndirectFieldType
	if c.shape == nullableVersion {
		kind = kind.Field(0).Type
	}
	switch {
	case c.IsTemporal():
		return unreadTime
	case kind.Kind() < reflect.Uint || kind.Kind() > reflect.Uint64:
		return Value{N: -1}
	case kind.Bits() < 64: // a form may hold less than the column
		return Value{N: min(c.Largest, 1<<kind.Bits()-1)}
	default:
		return Value{N: c.Largest}
	}
}

// unreadTime is near the zero time, which rows may have.
var unreadTime = At(time.Time{}.Add(time.Hour))

// IsUnread reports whether v is [Version.Unread].
func (c *Version) IsUnread(v Value) bool { return !v.Null && v.Equal(c.Unread()) }
