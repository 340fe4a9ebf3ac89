package invariants

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// form is a way to write, or to read, a row through a struct.
type form struct {
	name string
	code string // as a program writes it: x is the struct
	kind kind
	does effect
	// prepare does what the program does to the struct, and returns the statement.
	prepare func(c *cell) func(tx *gorm.DB) error
	only    func(s *shape) bool
	two     bool   // a second row is written with the first
	beside  bool   // there is a row which a condition lets through, and which the statement is not about
	inside  bool   // it makes sense in a transaction only
	several bool   // it is several statements, each of which may change the struct
	unique  bool   // the conflict is one of another column than the key
	keeps   bool   // a fresh struct stays fresh
	plural  bool   // a condition may leave the row out, which is no conflict
	refusal string // GORM itself may refuse it so
	apart   bool   // the statement has another struct with the same key, and does not see what this one holds
	partly  bool   // it writes no more than a part of what the struct holds
}

// kind says what the statement compares.
type kind uint8

const (
	checked kind = iota // the version that the struct holds
	blind               // nothing, for so it was asked
	upserts             // the version, if the struct was read
	expects             // a version that the caller names: the one the row has
	merges              // nothing, but it writes only what differs from what was read
	free                // what it does is not known here; the invariants hold all the same
)

// effect is what the statement was to do.
type effect uint8

const (
	writesA effect = iota // the row holds 90 in a
	deletes               // the row is gone, or soft-deleted
	other                 // something else, or nothing
)

const written int64 = 90 // what writers write into a

func set(c *cell) {
	c.h.assign("A", written)
	c.parted.move(c.h)
}

// plainly is a form that assigns nothing beforehand.
func plainly(run func(c *cell, tx *gorm.DB) error) func(*cell) func(*gorm.DB) error {
	return func(c *cell) func(*gorm.DB) error {
		return func(tx *gorm.DB) error { return run(c, tx) }
	}
}

// assigned is a form that sets A in the struct beforehand.
func assigned(run func(c *cell, tx *gorm.DB) error) func(*cell) func(*gorm.DB) error {
	return func(c *cell) func(*gorm.DB) error {
		set(c)
		return func(tx *gorm.DB) error { return run(c, tx) }
	}
}

// slice puts the struct, and what comes with it, into a slice of values; the elements are what the writer holds then.
func (c *cell) slice(more ...*held) any {
	all := append([]*held{c.h}, more...)
	s := reflect.MakeSlice(reflect.SliceOf(c.shape.model), len(all), len(all))
	for i, h := range all {
		s.Index(i).Set(h.row())
		h.ptr = s.Index(i).Addr().Interface()
	}
	p := reflect.New(s.Type())
	p.Elem().Set(s)
	return p.Interface()
}

// pointers puts them into a slice of pointers.
func (c *cell) pointers(more ...*held) any {
	all := append([]*held{c.h}, more...)
	s := reflect.MakeSlice(reflect.SliceOf(reflect.PointerTo(c.shape.model)), len(all), len(all))
	for i, h := range all {
		s.Index(i).Set(reflect.ValueOf(h.ptr))
	}
	return s.Interface()
}

// array puts the struct into an array.
func (c *cell) array() any {
	a := reflect.New(reflect.ArrayOf(1, c.shape.model))
	a.Elem().Index(0).Set(c.h.row())
	c.h.ptr = a.Elem().Index(0).Addr().Interface()
	return a.Interface()
}

// values is a struct of the model with nothing but A.
func (c *cell) values() any {
	v := reflect.New(c.shape.model)
	v.Elem().FieldByName("A").SetInt(written)
	return v.Interface()
}

type formOfA struct{ A int64 }

// formWithVersion is a struct of another type that has a version: one that came in a form.
func (c *cell) formWithVersion(version any) any {
	field := reflect.StructField{Name: "Version", Type: c.shape.version.FieldType,
		Tag: reflect.StructTag(`gorm:"column:` + c.shape.version.DBName + `"`)}
	t := reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[int64]()}, field})
	v := reflect.New(t)
	v.Elem().Field(0).SetInt(written)
	target := v.Elem().Field(1)
	from := reflect.New(c.shape.model)
	c.shape.setVersion(from.Interface(), version)
	value := c.shape.version.ReflectValueOf(c.ctx, from.Elem())
	target.Set(value)
	return v.Interface()
}

// mapWithVersion is a map that has a version.
func (c *cell) mapWithVersion(version any) map[string]any {
	return map[string]any{"a": written, c.shape.version.DBName: version}
}

// where is the condition that names the row, as the program spells its key.
func (c *cell) where() clause.Expression { return c.whereIn(clause.CurrentTable) }

func (c *cell) whereIn(table string) clause.Expression {
	row := reflect.New(c.shape.model)
	c.shape.key(row.Elem(), c.n, c.foreign)
	return c.shape.whereIn(row.Interface(), table)
}

// empty is a struct of the model with nothing in it.
func (c *cell) empty() any { return reflect.New(c.shape.model).Interface() }

func (c *cell) onKey() []clause.Column {
	var columns []clause.Column
	for _, name := range c.shape.schema.PrimaryFieldDBNames {
		columns = append(columns, clause.Column{Name: name})
	}
	return columns
}

var onU = []clause.Column{{Name: "u"}}

func isSoft(s *shape) bool  { return s.soft() }
func isHard(s *shape) bool  { return !s.soft() }
func hasTime(s *shape) bool { return s.has("UpdatedAt") }
func movable(s *shape) bool { return !s.xmin() }
func isInt(s *shape) bool   { return !s.xmin() && !s.timed() }
