package column

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"
)

// Follows reports whether a bump of had gives v.
func (c *Version) Follows(v, had Value) bool {
	return c.IsInteger() && !had.Null && !c.IsUnread(had) && c.Next(had, time.Time{}).Equal(v)
}

// BeforeUnread reports whether v is right below the number that means "not read". A bump of v skips that number.
func (c *Version) BeforeUnread(v Value) bool { return v.N == -2 && c.passesUnread() }

// MayPassUnread reports whether rows can have the number that means "not read": after the largest number, Java goes on below zero.
func (c *Version) MayPassUnread() bool { return c.IsHibernate() && c.passesUnread() }

func (c *Version) passesUnread() bool { return c.IsInteger() && c.Unread().N < 0 }

// Unread is the version of a struct that stands for a row but was not read from it, or may differ from it. It is not zero, because a
// struct with a zero may be new. No row gets this version: see [Version.BeforeUnread].
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

// UnreadInSQL is that version as a literal. It is no NULL: GORM would leave in a struct what was read before.
func (c *Version) UnreadInSQL() string {
	if c.IsTemporal() {
		return unreadTime.Time().Format("'2006-01-02 15:04:05-07'")
	}
	return "'" + strconv.FormatInt(c.Unread().N, 10) + "'"
}

// unreadIn is the number that means "not read" in a type: -1, or the greatest one of an unsigned type. It depends on the type only, because a
// form does not know its column.
func unreadIn(kind reflect.Type) int64 {
	switch {
	case kind.Kind() < reflect.Uint || kind.Kind() > reflect.Uint64:
		return -1
	case kind.Bits() < 64:
		return 1<<kind.Bits() - 1
	}
	return math.MaxInt64
}

// AtLargest is a text for errors: what the largest version is the largest of, and what to do about it.
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

// unreadTime is in the middle of year 1. In a column without a time zone it may become another time, but stays in that year.
var unreadTime = At(time.Date(1, time.July, 1, 0, 0, 0, 0, time.UTC))

// IsUnread reports whether v means "not read".
func (c *Version) IsUnread(v Value) bool {
	switch {
	case v.Null:
		return false
	case c.IsTemporal():
		return v.Time().Year() == 1 && v.Time().Month() > time.January
	}
	return v.N == c.Unread().N
}

// IsUnreadIn is IsUnread for a version as errors show it.
func (c *Version) IsUnreadIn(shown any) bool {
	v, err := c.Of(shown)
	return err == nil && c.IsUnread(v)
}
