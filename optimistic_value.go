package gormlock

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"gorm.io/gorm/schema"
)

const (
	railsMode     = "rails"
	hibernateMode = "hibernate"
	xminMode      = "xmin"
)

type versionKind uint8

const (
	integerVersion versionKind = iota
	temporalVersion
	systemVersion // xmin
)

// versionColumn is the version of a model: its field, and the rules the tag chose.
type versionColumn struct {
	field   *schema.Field
	kind    versionKind
	shape   versionShape
	mode    string
	initial int64
	largest int64
	tick    time.Duration
}

// versionShape is how the field holds its value.
type versionShape uint8

const (
	bareVersion     versionShape = iota
	pointerVersion               // NULL is nil
	nullableVersion              // NULL is not Valid: sql.NullInt64 and its like
)

// version is one value of a version column.
type version struct {
	n    int64
	at   *time.Time // of a temporal version; nil stands for the zero time
	null bool
}

func versionAt(t time.Time) version { return version{at: &t} }

func (v version) time() time.Time {
	if v.at == nil {
		return time.Time{}
	}
	return *v.at
}

func (v version) equal(other version) bool {
	return v.null == other.null && v.n == other.n && v.time().Equal(other.time())
}

// any is the version as errors show it and as statements send it.
func (c *versionColumn) any(v version) any {
	switch {
	case v.null:
		return nil
	case c.kind == temporalVersion:
		return v.time()
	case c.kind == systemVersion:
		return uint32(v.n) //nolint:gosec // xmin is 32 bits wide
	}
	return v.n
}

// showVersion is a version in a message.
func showVersion(v any) string {
	if t, ok := v.(time.Time); ok {
		return t.Format(time.RFC3339Nano)
	}
	if v == nil {
		return "NULL"
	}
	return fmt.Sprint(v)
}

// zeroIsLoaded tells whether 0 is a version a row can have: then a zero struct counts as one that was read.
func (c *versionColumn) zeroIsLoaded() bool { return c.kind == integerVersion && c.initial == 0 }

// loaded tells whether v can have been read from a row.
func (c *versionColumn) loaded(v version) bool {
	if c.zeroIsLoaded() {
		return true
	}
	if c.kind == temporalVersion {
		return !v.null && !v.time().IsZero()
	}
	return !v.null && v.n != 0
}

// unset tells whether a struct that is created with v gets the first version.
func (c *versionColumn) unset(v version) bool {
	switch {
	case v.null:
		return true
	case c.kind == temporalVersion:
		return v.time().IsZero()
	}
	return v.n == 0 || v.n < 0 && c.mode == hibernateMode
}

// first is the version of a new row.
func (c *versionColumn) first(now time.Time) version {
	if c.kind == temporalVersion {
		return versionAt(now.Truncate(c.tick))
	}
	return version{n: c.initial}
}

// next is the version after v.
func (c *versionColumn) next(v version, now time.Time) version {
	if c.kind != temporalVersion {
		return version{n: v.n + 1}
	}
	if v.null || v.time().IsZero() {
		return versionAt(now.Truncate(c.tick))
	}
	later := v.time().Truncate(c.tick).Add(c.tick)
	if now = now.Truncate(c.tick).In(v.time().Location()); now.After(later) {
		later = now
	}
	return versionAt(later)
}

var timeType = reflect.TypeFor[time.Time]()

// shapedAs settles kind and shape by the field's type, and tells whether it can be a version.
func (c *versionColumn) shapedAs(t reflect.Type) bool {
	switch {
	case t.Kind() == reflect.Pointer:
		c.shape, t = pointerVersion, t.Elem()
	case t.Kind() == reflect.Struct && t.PkgPath() == "database/sql" && t.NumField() == 2 && t.Field(1).Name == "Valid":
		c.shape, t = nullableVersion, t.Field(0).Type
	}
	switch {
	case t == timeType:
		c.kind = temporalVersion
		return true
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64, t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uint64:
		return true
	}
	return false
}

// place is the field in row; not valid where an embedded pointer on the way is nil.
func (c *versionColumn) place(row reflect.Value) reflect.Value {
	for n, i := range c.field.StructField.Index {
		if i >= 0 {
			row = row.Field(i)
			continue
		}
		row = row.Field(-i - 1)
		if n == len(c.field.StructField.Index)-1 {
			break
		}
		if row.IsNil() {
			return reflect.Value{}
		}
		row = row.Elem()
	}
	return row
}

// read is the version row holds.
func (c *versionColumn) read(row reflect.Value) version {
	place := c.place(row)
	if !place.IsValid() {
		return version{null: true}
	}
	return c.value(place)
}

func (c *versionColumn) value(place reflect.Value) version {
	switch c.shape {
	case bareVersion:
	case pointerVersion:
		if place.IsNil() {
			return version{null: true}
		}
		place = place.Elem()
	case nullableVersion:
		if !place.Field(1).Bool() {
			return version{null: true}
		}
		place = place.Field(0)
	}
	return scalar(place)
}

func scalar(place reflect.Value) version {
	switch {
	case place.CanInt():
		return version{n: place.Int()}
	case place.CanUint():
		return version{n: int64(place.Uint())} //nolint:gosec // a column holds no more
	}
	t, _ := place.Interface().(time.Time)
	return versionAt(t)
}

// write puts v into row. A pointer is replaced and never written through: two structs may share it.
func (c *versionColumn) write(row reflect.Value, v version) {
	place := c.place(row)
	if !place.IsValid() && row.CanAddr() && !v.null {
		place = c.field.ReflectValueOf(context.Background(), row) // makes the embedded struct
	}
	if !place.IsValid() || !place.CanSet() {
		return
	}
	if v.null {
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
		place.SetInt(v.n)
	case place.CanUint():
		place.SetUint(uint64(v.n)) //nolint:gosec // read from there
	default:
		place.Set(reflect.ValueOf(v.time()))
	}
}

// of makes a version of what a caller gave: in a map, to ExpectVersion.
func (c *versionColumn) of(value any) (version, error) {
	if value == nil {
		return version{null: true}, nil
	}
	if v, ok := value.(version); ok {
		return v, nil
	}
	given := versionColumn{field: c.field}
	v := reflect.ValueOf(value)
	if !given.shapedAs(v.Type()) || (given.kind == temporalVersion) != (c.kind == temporalVersion) {
		return version{}, fmt.Errorf("gormlock: %s.%s: %v (%T) is not a version", c.field.Schema.Name, c.field.Name, value, value)
	}
	return given.value(v), nil
}

// plainly tells that v is a number that a row can hold as it is: not NULL, and not the 0 that may stand for it.
func (c *versionColumn) plainly(v version) bool {
	return c.kind == temporalVersion && !v.null && !v.time().IsZero() || c.kind == integerVersion && !v.null && v.n != 0
}
