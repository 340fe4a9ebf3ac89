package compare

import (
	"database/sql"
	"database/sql/driver"
	"reflect"
	"regexp"
	"strings"
	"time"

	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/statement"
)

// Comparison writes a condition that two values of a column are equal. NULL equals NULL. json is compared by its meaning,
// text by its bytes even if the collation ignores differences, times and numbers as the column rounds them. If the = of a
// type ignores differences (for box it compares areas), the values are compared by their text.
type Comparison struct {
	statement.SQL
	table string
	field *schema.Field

	same, collate string
	value         around // each value
	stored        around // what a struct holds, cast to the column's type, so it is rounded
	shown         bool   // compared by its text
	noText        bool   // the column has no empty value: a struct holds an empty text if the row has NULL
}

// around is the text before and after a value.
type around struct{ before, behind string }

// Of compares values of a column. table is its qualifier if the statement has several tables.
func Of(sql statement.SQL, table string, field *schema.Field) Comparison {
	c := Comparison{SQL: sql, table: table, field: field}
	speaks := dialect.Of(sql.DB)
	c.same = speaks.Same()
	switch {
	case speaks.IsMySQL():
		kind := ColumnType(sql.DB, field)
		c.value.before, c.value.behind = speaks.Bytes(kind, field.IndirectFieldType)
		c.stored.before, c.stored.behind = speaks.StoredTime(kind, field.IndirectFieldType)
		return c
	case !speaks.IsPostgres():
		return c
	}
	switch kind := ColumnType(sql.DB, field); {
	case kind == "json":
		c.value.behind, c.noText = "::jsonb", true
	case IsText(kind) && isJSON(field):
		c.value.before, c.value.behind, c.noText = "NULLIF(", "::text,'')::jsonb", true
	case IsText(kind):
		if held := field.IndirectFieldType; held.Kind() == reflect.String || held == nullString || held == nullOfString {
			c.value.behind, c.collate, c.shown = "::text", byBytes, isUndeclaredText(field)
		}
	case rounds.MatchString(kind):
		c.stored.behind, c.noText = "::"+kind, true
	case !comparedByValue.MatchString(kind):
		c.value.behind, c.collate, c.shown = "::text", byBytes, true
	default:
		c.noText = !strings.HasPrefix(kind, "bytea")
	}
	return c
}

var nullString, nullOfString = reflect.TypeFor[sql.NullString](), reflect.TypeFor[sql.Null[string]]()

// isUndeclaredText reports whether a field is a plain string whose tag does not name the type of the column. The program may have created the
// column with another type than GORM would: an inet, a char(3), an enum.
func isUndeclaredText(field *schema.Field) bool {
	_, writesItself := reflect.New(field.IndirectFieldType).Interface().(driver.Valuer)
	return field.IndirectFieldType.Kind() == reflect.String && field.TagSettings["TYPE"] == "" && field.Serializer == nil && !writesItself
}

const byBytes = ` COLLATE "C"`

// rounds matches types that may store a value other than the given one.
var rounds = regexp.MustCompile(`^(date|time(stamp)?(tz)?( ?\(\d\))?( with(out)? time zone)?|(numeric|decimal) ?\(\d+(, ?\d+)?\))$`)

// comparedByValue matches types, and arrays of them, whose = means that two values are the same. In a tag, other words may follow.
var comparedByValue = regexp.MustCompile(`^(jsonb|uuid|inet|cidr|macaddr8?|bytea|bool(ean)?|small(int|serial)|big(int|serial)|integer|int[248]?|serial[248]?|numeric|decimal|` +
	`real|double precision|float[48]?|date|time(stamp)?(tz)?)($|\W)`)

// ColumnType is the type of a column as the model declares it, in small letters.
func ColumnType(db interface{ DataTypeOf(*schema.Field) string }, field *schema.Field) string {
	return strings.ToLower(strings.TrimSpace(db.DataTypeOf(field)))
}

// IsText reports whether a type stores texts as they are given.
func IsText(kind string) bool {
	return textual.MatchString(kind) && !strings.Contains(kind, "[")
}

var textual = regexp.MustCompile(`^(text|citext|varchar|character varying)($|\W)`)

// Own writes the column.
func (c Comparison) Own() {
	c.Text(c.value.before)
	c.Column(c.table, c.field.DBName)
	c.Text(c.value.behind)
}

// isJSON reports whether a field is written as JSON, whatever the type of its column is.
func isJSON(field *schema.Field) bool {
	_, is := field.Serializer.(schema.JSONSerializer)
	return is
}

// In writes the value of a struct, with the type of the column if needed, because a parameter has no type of its own.
func (c Comparison) In(row reflect.Value, typed bool) func() {
	value, zero := c.field.ValueOf(c.Context, row)
	if statement.IsPostgres(c.DB) {
		value = column.InTick(value, time.Microsecond)
	}
	noText := zero && c.field.FieldType.Kind() == reflect.String
	if noText && c.noText {
		value = nil
	}
	return func() {
		c.Text(c.value.before)
		if noText && c.shown { // an empty text may not be a value of the type
			c.Text("''::text")
			return
		}
		if typed || c.shown {
			c.Text("(CASE WHEN 1=0 THEN ")
			c.Column(c.table, c.field.DBName)
			c.Text(" ELSE ")
		}
		c.Text(c.stored.before)
		c.Expression(value)
		c.Text(c.stored.behind)
		if typed || c.shown {
			c.Text(" END)")
		}
		c.Text(c.value.behind)
	}
}

// Held writes the condition that the column still holds what was read from it into a struct. If the field cannot hold NULL, a NULL was read as
// zero.
func (c Comparison) Held(row reflect.Value) {
	_, zero := c.field.ValueOf(c.Context, row)
	orNull := zero && !c.field.NotNull && !c.field.PrimaryKey && c.field.FieldType.Kind() != reflect.Pointer
	if orNull {
		c.Text("(")
	}
	c.Equal(c.Own, c.In(row, false))
	if orNull {
		c.Text(" OR ")
		c.Column(c.table, c.field.DBName)
		c.Text(" IS NULL)")
	}
}

// Equal writes the condition that a equals b.
func (c Comparison) Equal(a, b func()) {
	a()
	c.Text(c.collate, c.same)
	b()
}
