package column

import (
	"fmt"
	"math"
	"reflect"
	"time"
)

// Follows reports whether v is the number that a bump makes of had.
func (c *Version) Follows(v, had Value) bool {
	return c.IsInteger() && !had.Null && !c.IsUnread(had) && c.Next(had, time.Time{}).Equal(v)
}

// BeforeUnread reports whether v is right below the number that stands for none that was read. No version is moved to that one, but past it.
func (c *Version) BeforeUnread(v Value) bool { return v.N == -2 && c.passesUnread() }

// MayPassUnread reports whether rows may be there although nobody has read one: Java goes on below zero behind the largest number.
func (c *Version) MayPassUnread() bool { return c.IsHibernate() && c.passesUnread() }

func (c *Version) passesUnread() bool { return c.IsInteger() && c.Unread().N < 0 }

// Unread is the version of a struct that stands for a row and was not read from it, or is not known to have what the row has. It is not zero: a
// zero struct may be new. No version that a row comes to is compared with it, see [Version.IsUnread].
func (c *Version) Unread() Value {
	if c.IsTemporal() {
		return unreadTime
	}
	kind := c.Field.IndirectFieldType
	if c.shape == nullableVersion {
		kind = kind.Field(0).Type
	}
	return Value{N: unreadIn(kind)}
}

// unreadIn is the number for a type: the greatest one where it has no -1. It does not depend on the column, which a form does not know.
func unreadIn(kind reflect.Type) int64 {
	switch {
	case kind.Kind() < reflect.Uint || kind.Kind() > reflect.Uint64:
		return -1
	case kind.Bits() < 64:
		return 1<<kind.Bits() - 1
	}
	return math.MaxInt64
}

// AtLargest says of the largest version what it is the largest of, and what to do about it.
func (c *Version) AtLargest() string {
	unread := ""
	switch {
	case !c.Narrow:
		return fmt.Sprintf("the largest its column holds: give the column %s a larger type, in the table and in the model", c.Field.DBName)
	case c.Unread().N > 0:
		unread = fmt.Sprintf(" (%d stands for a struct that was not read)", c.Unread().N)
	}
	return fmt.Sprintf("the largest its field can have%s: give the field %s a larger type than %s", unread, c.Field.Name, c.Field.FieldType)
}

// unreadTime is in the middle of the first year: without its time zone, as in a column of type timestamp, it is another time of that year.
var unreadTime = At(time.Date(1, time.July, 1, 0, 0, 0, 0, time.UTC))

// IsUnread reports whether v stands for none that was read.
func (c *Version) IsUnread(v Value) bool {
	switch {
	case v.Null:
		return false
	case c.IsTemporal():
		return v.Time().Year() == 1 && v.Time().Month() > time.January
	}
	return v.N == c.Unread().N
}

// IsUnreadIn is IsUnread of a version as errors show it.
func (c *Version) IsUnreadIn(shown any) bool {
	v, err := c.Of(shown)
	return err == nil && c.IsUnread(v)
}
