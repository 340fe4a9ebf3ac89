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

// comparison writes when two values of a column are the same: NULL is NULL, json is compared by its meaning, a text by its
// bytes whatever the column's collation calls equal, times and numbers as the column rounds them. Types whose = says less
// than that two values are the same, such as box, which it compares by the area, are compared as the server shows them.
type comparison struct {
	statement.SQL
	table string
	field *schema.Field

	same, collate string
	before, as    string // what stands before and behind each value
	store, stored string // what stands before and behind what a struct holds: the type as which the column stores it
	shown         bool   // compared as the server shows it
	noText        bool   // an empty text is no value of the column: a struct has it where the row has NULL
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

// rounds is a type that stores some values otherwise than they are given.
var rounds = regexp.MustCompile(`^(date|time(stamp)?(tz)?( ?\(\d\))?( with(out)? time zone)?|(numeric|decimal) ?\(\d+(, ?\d+)?\))$`)

// comparedByValue is a type, or an array of it, whose = means that two values are the same. Other words may follow it in a tag.
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

// isJSON reports whether a field is written as JSON, whatever its column is.
func isJSON(field *schema.Field) bool {
	_, is := field.Serializer.(schema.JSONSerializer)
	return is
}

// valueIn writes what a struct holds, of the type of the column if it has to say so: a parameter has none of its own.
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

// compare writes that a is b.
func (c comparison) compare(a, b func()) {
	a()
	c.Text(c.collate, c.same)
	b()
}
