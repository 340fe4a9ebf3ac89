package column

import (
	"context"
	"reflect"
	"time"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/statement"
)

const (
	railsMode     = "rails"
	hibernateMode = "hibernate"
	xminMode      = "xmin"
)

type kind uint8

const (
	integerVersion kind = iota
	temporalVersion
	systemVersion // xmin
)

// Version is the version of a model: its field, and the rules the tag chose.
type Version struct {
	Field   *schema.Field
	kind    kind
	shape   shape
	mode    string
	Initial int64
	Largest int64
	Narrow  bool // the field holds less than its column
	Tick    time.Duration

	zone zone // of times that are sent as a clock shows them

	FarInTime time.Duration // how far [Version.Apart] goes from a time
}

// shape is how the field holds its value.
type shape uint8

const (
	bareVersion     shape = iota
	pointerVersion        // NULL is nil
	nullableVersion       // NULL is not Valid: sql.NullInt64 and its like
)

// IsInteger reports whether versions are numbers that gormlock counts up.
func (c *Version) IsInteger() bool { return c.kind == integerVersion }

// IsTemporal reports whether versions are times.
func (c *Version) IsTemporal() bool { return c.kind == temporalVersion }

// IsSystem reports whether the version is xmin, which the server keeps.
func (c *Version) IsSystem() bool { return c.kind == systemVersion }

// IsRails reports whether the column follows the rules of Rails.
func (c *Version) IsRails() bool { return c.mode == railsMode }

// IsHibernate reports whether the column follows the rules of Hibernate.
func (c *Version) IsHibernate() bool { return c.mode == hibernateMode }

// Zero is the version in a struct where none was set.
func (c *Version) Zero() Value { return Value{} }

// IsBare reports whether the field cannot hold NULL.
func (c *Version) IsBare() bool { return c.shape == bareVersion }

// Value is one value of a version column.
type Value struct {
	N    int64
	At   *time.Time // for a temporal version; nil: the zero time
	Null bool
}

// At is the version with this time.
func At(t time.Time) Value { return Value{At: &t} }

// Time returns the time of a temporal version, the zero time if there is none.
func (v Value) Time() time.Time {
	if v.At == nil {
		return time.Time{}
	}
	return *v.At
}

// Equal reports whether two versions are the same.
func (v Value) Equal(other Value) bool {
	return v.Null == other.Null && v.N == other.N && (v.At == other.At || v.Time().Equal(other.Time()))
}

// Any is the version as errors show it.
func (c *Version) Any(v Value) any {
	switch {
	case v.Null:
		return nil
	case c.IsTemporal():
		return v.Time()
	case c.IsSystem():
		return uint32(v.N) //nolint:gosec // xmin is 32 bits wide
	}
	return v.N
}

// ZeroIsLoaded reports whether a row can have version 0. Then a struct with version 0 counts as read.
func (c *Version) ZeroIsLoaded() bool { return c.IsInteger() && c.Initial == 0 }

// Loaded reports whether v can have been read from a row.
func (c *Version) Loaded(v Value) bool {
	switch {
	case c.IsUnread(v):
		return false
	case c.ZeroIsLoaded():
		return true
	case v.Null:
		return false
	case c.IsTemporal():
		return !v.Time().IsZero()
	}
	return v.N != 0
}

// Unset reports whether a struct that is created with v gets the first version.
func (c *Version) Unset(v Value) bool {
	switch {
	case v.Null, c.IsUnread(v):
		return true
	case c.IsTemporal():
		return v.Time().IsZero()
	}
	return v.N == 0 || v.N < 0 && c.IsHibernate()
}

// IsGiven reports whether somebody has set the version in row. A pointer to 0 is set; a bare 0 is Go's zero value.
func (c *Version) IsGiven(row reflect.Value) bool {
	return !c.IsBlank(c.Read(row))
}

// IsBlank reports whether v is the version of a struct where nobody has set one.
func (c *Version) IsBlank(v Value) bool {
	return v.Null || c.IsBare() && v.N == 0 && v.Time().IsZero()
}

// First is the version of a new row.
func (c *Version) First(now time.Time) Value {
	if c.IsTemporal() {
		return At(c.clock(now.Truncate(c.Tick)))
	}
	return Value{N: c.Initial}
}

// Next is the version after v.
func (c *Version) Next(v Value, now time.Time) Value {
	switch {
	case c.IsUnread(v):
		return c.First(now)
	case c.BeforeUnread(v):
		return Value{}
	case !c.IsTemporal():
		return Value{N: v.N + 1}
	case v.Null, v.Time().IsZero():
		return c.First(now)
	}
	later := v.Time().Truncate(c.Tick).Add(c.Tick)
	if now = now.Truncate(c.Tick).In(v.Time().Location()); now.After(later) {
		later = now
	}
	return At(later)
}

// shapedAs sets kind and shape from the field's type, and reports whether the type can hold a version.
func (c *Version) shapedAs(t reflect.Type) bool {
	switch {
	case t.Kind() == reflect.Pointer:
		c.shape, t = pointerVersion, t.Elem()
	case t.Kind() == reflect.Struct && t.PkgPath() == "database/sql" && t.NumField() == 2 && t.Field(1).Name == "Valid":
		c.shape, t = nullableVersion, t.Field(0).Type
	}
	switch {
	case t == statement.TimeType:
		c.kind = temporalVersion
		return true
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64, t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64:
		return true
	}
	return false
}

// Read is the version in row, a struct.
func (c *Version) Read(row reflect.Value) Value {
	place := statement.Place(c.Field, row)
	if !place.IsValid() {
		return Value{Null: true}
	}
	return c.value(place)
}

func (c *Version) value(place reflect.Value) Value {
	switch c.shape {
	case bareVersion:
	case pointerVersion:
		if place.IsNil() {
			return Value{Null: true}
		}
		place = place.Elem()
	case nullableVersion:
		if !place.Field(1).Bool() {
			return Value{Null: true}
		}
		place = place.Field(0)
	}
	return scalar(place)
}

func scalar(place reflect.Value) Value {
	switch {
	case place.CanInt():
		return Value{N: place.Int()}
	case place.CanUint():
		return Value{N: int64(place.Uint())} //nolint:gosec // a column holds no more
	}
	t, _ := place.Interface().(time.Time)
	return At(t)
}

// Write sets the version in row to v. It replaces a pointer and never writes through it, because two structs may share it.
func (c *Version) Write(row reflect.Value, v Value) {
	place := statement.Place(c.Field, row)
	if !place.IsValid() && row.CanAddr() && !v.Null {
		place = c.Field.ReflectValueOf(context.Background(), row) // makes the embedded struct
	}
	if !place.IsValid() || !place.CanSet() {
		return
	}
	if v.Null {
		place.SetZero()
		return
	}
	switch c.shape {
	case bareVersion:
	case pointerVersion:
		place.Set(reflect.New(place.Type().Elem()))
		place = place.Elem()
	case nullableVersion:
		place.Field(1).SetBool(true)
		place = place.Field(0)
	}
	switch {
	case place.CanInt():
		place.SetInt(v.N)
	case place.CanUint():
		place.SetUint(uint64(v.N)) //nolint:gosec // it was read from such a field
	default:
		place.Set(reflect.ValueOf(v.Time()))
	}
}

// FormColumn is the version column as a field of a form holds it, and whether that field can hold versions.
func (c *Version) FormColumn(field *schema.Field) (form *Version, holds bool) {
	form = &Version{Field: field, Largest: c.Largest}
	return form, form.shapedAs(field.FieldType)
}

// Apart returns a version so far from v that no row has it while a struct holds v. ok is false if there is none.
func (c *Version) Apart(v Value) (apart Value, ok bool) {
	switch {
	case c.IsTemporal():
		return At(c.far(v.Time())), !v.Null && !v.Time().IsZero()
	case !c.IsInteger():
		return v, false
	}
	return Value{N: c.apart(v.N)}, true
}

// apart changes one bit of n. If versions do not start at 0, a CHECK may forbid 0. To avoid it, three numbers are exchanged in a circle
// instead: see [Version.Turns].
func (c *Version) apart(n int64) int64 {
	for _, turn := range c.Turns() {
		if n == turn[0] {
			return turn[1]
		}
	}
	return n ^ c.Far()
}

// Turns are the numbers that [Version.Apart] does not change by a bit, each with the number that it returns instead.
func (c *Version) Turns() [][2]int64 {
	if c.ZeroIsLoaded() {
		return nil
	}
	far, half := c.Far(), c.Far()/2
	return [][2]int64{{far, half}, {half, far + half}, {far + half, far}}
}

// Far is the bit that [Version.Apart] changes. It is small, because the column may hold less than the model says.
func (c *Version) Far() int64 {
	far := int64(1 << 14)
	for far > c.Largest/2+1 {
		far /= 2
	}
	return far
}

// farInTime is how far [Version.Apart] goes from a time, unless the column's type limits it.
const farInTime = 876_000 * time.Hour

// Plainly reports whether v is a real version: not NULL, not 0 (which may stand for NULL), and not unread.
func (c *Version) Plainly(v Value) bool {
	return !v.Null && !c.IsUnread(v) && (c.IsTemporal() && !v.Time().IsZero() || c.IsInteger() && v.N != 0)
}

// Stored returns v as the column holds it: a time is cut to the column's precision.
func (c *Version) Stored(v Value) Value {
	if v.At != nil {
		return At(v.Time().Truncate(c.Tick))
	}
	return v
}
