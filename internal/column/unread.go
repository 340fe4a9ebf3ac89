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

// Unread is the version of a struct that no row has: a write of it fails.
func (c *Version) Unread() Value {
	if !c.ZeroIsLoaded() {
		return Value{Null: true}
	}
	return c.OfNoRow()
}

// OfNoRow is one that no row has, where 0 and NULL would say that none is expected.
func (c *Version) OfNoRow() Value {
	kind := c.Field.IndirectFieldType
	if c.shape == nullableVersion {
		kind = kind.Field(0).Type
	}
	switch {
	case c.IsTemporal():
		return At(time.Time{}.Add(time.Hour))
	case kind.Kind() >= reflect.Uint && kind.Kind() <= reflect.Uint64:
		return Value{N: c.Largest}
	default:
		return Value{N: -1}
	}
}

// IsUnread reports whether v is the version of a struct that counts as not read, where 0 would say that it was read.
func (c *Version) IsUnread(v Value) bool { return c.ZeroIsLoaded() && !v.Null && v.Equal(c.OfNoRow()) }
