package guard

import (
	"reflect"
	"regexp"
	"strings"
	"time"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/statement"
)

// comparison writes a condition that two values of a column are equal. NULL equals NULL. json is compared by its meaning,
// text by its bytes even if the collation ignores differences, times and numbers as the column rounds them. If the = of a
// type ignores differences (for box it compares areas), the values are compared by their text.
type comparison struct {
	statement.SQL
	table string
	field *schema.Field

	same, collate string
	before, as    string // the text before and after each value
	store, stored string // what stands before and behind what a struct holds: the type as which the column stores it
	shown         bool   // compared by its text
	noText        bool   // the column has no empty value: a struct has an empty text if the row has NULL
}

func newComparison(sql statement.SQL, table string, field *schema.Field) comparison {
	c := comparison{SQL: sql, table: table, field: field}
	speaks := dialect.Of(sql.DB)
	c.same = speaks.Same()
	switch {
	case speaks.IsMySQL():
		kind := ColumnType(sql.DB, field)
		c.before, c.as = speaks.Bytes(kind, field.IndirectFieldType)
		c.store, c.stored = speaks.StoredTime(kind, field.IndirectFieldType)
		return c
	case !speaks.IsPostgres():
		return c
	}
	switch kind := ColumnType(sql.DB, field); {
	case kind == "json":
		c.as, c.noText = "::jsonb", true
	case IsText(kind) && isJSON(field):
		c.before, c.as, c.noText = "NULLIF(", "::text,'')::jsonb", true
	case IsText(kind):
		if field.IndirectFieldType.Kind() == reflect.String {
			c.as, c.collate = "::text", byBytes
		}
	case rounds.MatchString(kind):
		c.stored, c.noText = "::"+kind, true
	case !comparedByValue.MatchString(kind):
		c.as, c.collate, c.shown = "::text", byBytes, true
	default:
		c.noText = !strings.HasPrefix(kind, "bytea")
	}
	return c
}

const byBytes = ` COLLATE "C"`

// rounds is a type that may store another value than it was given.
var rounds = regexp.MustCompile(`^(date|time(stamp)?(tz)?( ?\(\d\))?( with(out)? time zone)?|(numeric|decimal) ?\(\d+(, ?\d+)?\))$`)

// comparedByValue is a type, or an array of it, whose = means that two values are the same. In a tag, other words may
// follow it.
var comparedByValue = regexp.MustCompile(`^(jsonb|uuid|inet|cidr|macaddr8?|bytea|bool(ean)?|small(int|serial)|big(int|serial)|integer|int[248]?|serial[248]?|numeric|decimal|` +
	`real|double precision|float[48]?|date|time(stamp)?(tz)?)($|\W)`)

// ColumnType is the type of a column as the model has it, in small letters.
func ColumnType(db interface{ DataTypeOf(*schema.Field) string }, field *schema.Field) string {
	return strings.ToLower(strings.TrimSpace(db.DataTypeOf(field)))
}

// IsText reports whether a type is one of texts that are stored as they are given.
func IsText(kind string) bool {
	return textual.MatchString(kind) && !strings.Contains(kind, "[")
}

var textual = regexp.MustCompile(`^(text|citext|varchar|character varying)($|\W)`)

// column writes the column.
func (c comparison) column() {
	c.Text(c.before)
	c.Column(c.table, c.field.DBName)
	c.Text(c.as)
}

// isJSON reports whether a field is written as JSON, whatever the type of its column is.
func isJSON(field *schema.Field) bool {
	_, is := field.Serializer.(schema.JSONSerializer)
	return is
}

// valueIn writes the value of a struct, with the type of the column if needed: a parameter has no type of its own.
func (c comparison) valueIn(row reflect.Value, typed bool) func() {
	value, zero := c.field.ValueOf(c.Context, row)
	if statement.IsPostgres(c.DB) {
		value = column.InTick(value, time.Microsecond)
	}
	noText := zero && c.field.FieldType.Kind() == reflect.String
	if noText && c.noText {
		value = nil
	}
	return func() {
		c.Text(c.before)
		if noText && c.shown { // which may be no value of the type
			c.Text("''::text")
			return
		}
		if typed || c.shown {
			c.Text("(CASE WHEN 1=0 THEN ")
			c.Column(c.table, c.field.DBName)
			c.Text(" ELSE ")
		}
		c.Text(c.store)
		c.Expression(value)
		c.Text(c.stored)
		if typed || c.shown {
			c.Text(" END)")
		}
		c.Text(c.as)
	}
}

// compare writes the condition that a equals b.
func (c comparison) compare(a, b func()) {
	a()
	c.Text(c.collate, c.same)
	b()
}
