package match

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/statement"
)

// comparison compares one column of structs with that column of rows. If all values have a text, it compares the texts.
type comparison struct {
	field   *schema.Field
	texts   bool
	free    bool           // some structs sent nothing, because the column has a default
	structs map[int]string // what each open struct sent
	found   []string       // what each remaining row has
}

// compared returns comparisons of columns.
func (m *matching) compared(open []int, fields []*schema.Field) []*comparison {
	all := make([]*comparison, len(fields))
	for n, field := range fields {
		c := &comparison{field: field, texts: true, structs: make(map[int]string, len(open)), found: make([]string, len(m.left))}
		for _, i := range open {
			c.structs[i] = c.text(m, m.sentBy(field, i))
			c.free = c.free || m.sentNothing(field, i)
		}
		for k, row := range m.left {
			c.found[k] = c.text(m, row)
		}
		all[n] = c
	}
	return all
}

// text is the text of a column's value, if texts of its type differ whenever the values do.
func (c *comparison) text(m *matching, row reflect.Value) string {
	if !c.texts {
		return ""
	}
	value, _ := c.field.ValueOf(m.stmt.Context, row)
	sent, err := statement.Sent(value)
	v := reflect.ValueOf(sent)
	if again, _ := statement.Sent(value); !reflect.DeepEqual(sent, again) {
		v = statement.Place(c.field, row) // it is encrypted, with a random number
	}
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	var at time.Time
	isTime := v.IsValid() && v.Type() == statement.TimeType
	if isTime {
		at, _ = v.Interface().(time.Time)
	}
	switch kind := v.Kind(); {
	case err != nil:
	case isTime && m.table.Respells(c.field): // both are times of the server
		return "=" + at.UTC().String()
	case isTime && !m.asked:
		return "=" + at.UTC().Round(time.Microsecond).String()
	case kind == reflect.Invalid || kind == reflect.Pointer:
		return "null"
	case kind == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		return "=" + string(v.Bytes())
	case kind <= reflect.Float64 || kind == reflect.String:
		return "=" + fmt.Sprint(plain(v))
	}
	c.texts = false
	return ""
}

// plain is a value without the methods of its type.
func plain(v reflect.Value) any {
	switch {
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return v.Uint()
	case v.CanFloat():
		return v.Float()
	case v.Kind() == reflect.Bool:
		return v.Bool()
	default:
		return v.String()
	}
}

// sorts reports whether matching structs and rows have the same text here.
func (c *comparison) sorts() bool { return c.texts && !c.free }

// nameOf is the text of a struct or a row in all columns that sort.
func nameOf(all []*comparison, text func(*comparison) string) string {
	var name strings.Builder
	for _, c := range all {
		if c.sorts() {
			statement.Write(&name, fmt.Sprint(len(text(c))), text(c))
		}
	}
	return name.String()
}

// holdsAll reports whether each remaining row equals some struct here.
func (c *comparison) holdsAll(m *matching, open []int) bool {
	if c.texts {
		known := make(map[string]bool, len(open))
		for _, text := range c.structs {
			known[text] = true
		}
		return !slices.ContainsFunc(c.found, func(text string) bool { return !known[text] })
	}
	return !slices.ContainsFunc(m.left, func(row reflect.Value) bool {
		return !slices.ContainsFunc(open, func(i int) bool { return m.same(c.field, m.sentBy(c.field, i), row) })
	})
}

// holds reports whether a struct sent the value that a row has.
func (c *comparison) holds(m *matching, i, row int) bool {
	switch {
	case m.sentNothing(c.field, i):
		return true
	case c.texts:
		return c.structs[i] == c.found[row]
	default:
		return m.same(c.field, m.sentBy(c.field, i), m.left[row])
	}
}

// isSame reports whether two structs sent the same value.
func (c *comparison) isSame(m *matching, i, k int) bool {
	if c.texts {
		return c.structs[i] == c.structs[k]
	}
	return m.same(c.field, m.sentBy(c.field, i), m.sentBy(c.field, k))
}

// sentNothing reports whether a struct left the column to its default.
func (m *matching) sentNothing(field *schema.Field, i int) bool {
	_, zero := field.ValueOf(m.stmt.Context, m.Structs[i])
	return zero && field.HasDefaultValue
}

// sentBy is the struct to compare with a row in a column. If the server was asked, it is what the server made of the struct that was sent.
func (m *matching) sentBy(field *schema.Field, i int) reflect.Value {
	if m.spelled[i].IsValid() && m.table.Respells(field) {
		return m.spelled[i]
	}
	return m.Structs[i]
}

func (m *matching) same(field *schema.Field, x, y reflect.Value) bool {
	if a, b := statement.Place(field, x), statement.Place(field, y); a.IsValid() && b.IsValid() && reflect.DeepEqual(a.Interface(), b.Interface()) {
		return true // encrypted values are sent differently each time
	}
	mine, _ := field.ValueOf(m.stmt.Context, x)
	theirs, _ := field.ValueOf(m.stmt.Context, y)
	if field.Serializer != nil { // the values that GORM returns for it are never equal
		mine, _ = statement.Sent(mine)
		theirs, _ = statement.Sent(theirs)
	}
	return statement.SameValue(mine, theirs, column.TickIn(m.stmt.DB, field))
}
