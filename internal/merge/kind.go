package merge

import (
	"database/sql"
	"database/sql/driver"
	"math"
	"reflect"
	"regexp"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	columns "github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/compare"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/statement"
)

// likeness says whether two values are equal to the server.
type likeness uint8

const (
	same likeness = iota
	different
	unsure // they are written differently, and may be equal
)

// kind says how to compare the values of a column.
type kind struct {
	stmt  *gorm.Statement
	field *schema.Field
	whole bool // the field holds the whole column, and values that are written differently are different
	tick  time.Duration
}

// kindOf returns the kind of a column. For most Go types, two different values are different to the server too. The types
// for which this is proven are listed here; for all others the server is asked.
func (s *save) kindOf(stmt *gorm.Statement, field *schema.Field) kind {
	k := kind{stmt: stmt, field: field, tick: time.Nanosecond}
	column, isPostgres := dialect.ColumnType(stmt.DB, field), statement.IsPostgres(stmt.DB)
	switch {
	case isPostgres:
		k.tick = time.Microsecond
	case dialect.Of(stmt.DB).IsMySQL():
		k.tick = columns.TickIn(stmt.DB, field)
	}
	held := field.IndirectFieldType
	pointer := reflect.PointerTo(held)
	switch {
	case k.holdsSame(s.base, s.mine): // there is nothing to decide
	case field.Serializer != nil:
		k.whole = !k.isPlain(s.base, s.mine)
	case held == statement.TimeType:
		k.whole = !isPostgres || wholeTime.MatchString(column)
	case pointer.Implements(reflect.TypeFor[driver.Valuer]()), pointer.Implements(reflect.TypeFor[sql.Scanner]()):
		k.whole = !k.isPlain(s.base, s.mine)
	case held.Kind() == reflect.String:
		k.whole = !isPostgres || compare.IsText(column)
	case held.Kind() == reflect.Bool:
		k.whole = true
	case held.Kind() >= reflect.Int && held.Kind() <= reflect.Uint64:
		k.whole = !isPostgres || wholeNumber.MatchString(column)
	case held.Kind() == reflect.Float64:
		k.whole = column == "double precision" || column == "float8"
	case held.Kind() == reflect.Slice && held.Elem().Kind() == reflect.Uint8:
		k.whole = !isPostgres || column == "bytea"
	}
	return k
}

var (
	wholeTime   = regexp.MustCompile(`^timestamp(tz)?( with(out)? time zone)?$`)
	wholeNumber = regexp.MustCompile(`^(small(int|serial)|big(int|serial)|integer|int[248]?|serial[248]?)($|\W)`)
)

// isPlain reports whether a serializer, or a type of the application, always writes a value in the same way. It does not
// if it encrypts, or if gob writes a map. Then the values that were read are compared, and not their bytes.
func (k kind) isPlain(rows ...reflect.Value) bool {
	for _, row := range rows {
		first := k.sent(row)
		for range 20 {
			if !reflect.DeepEqual(k.sent(row), first) {
				return false
			}
		}
	}
	return true
}

func (k kind) holdsSame(a, b reflect.Value) bool {
	return reflect.DeepEqual(inField(k.field, a), inField(k.field, b))
}

// compare compares the values of two structs.
func (k kind) compare(a, b reflect.Value) likeness {
	if k.holdsSame(a, b) {
		return same
	}
	x, y := k.sent(a), k.sent(b)
	if xt, ok := x.(time.Time); ok {
		if yt, ok := y.(time.Time); ok {
			return k.compareTimes(xt, yt)
		}
	}
	if xf, ok := x.(float64); ok {
		if yf, ok := y.(float64); ok && math.IsNaN(xf) && math.IsNaN(yf) {
			return same
		}
	}
	switch {
	case reflect.DeepEqual(x, y):
		return same
	case k.whole:
		return different
	}
	return unsure
}

// compareTimes compares what would be sent. A timestamptz is a moment; a timestamp is what a clock shows.
func (k kind) compareTimes(a, b time.Time) likeness {
	a, b = a.Truncate(k.tick), b.Truncate(k.tick)
	_, aZone := a.Zone()
	_, bZone := b.Zone()
	switch {
	case a.Equal(b) && aZone == bZone:
		return same
	case k.whole && !a.Equal(b) && !a.Add(time.Duration(aZone)*time.Second).Equal(b.Add(time.Duration(bZone)*time.Second)):
		return different
	}
	return unsure
}

// sent returns what a statement would send for a field.
func (k kind) sent(row reflect.Value) any {
	value, _ := k.field.ValueOf(k.stmt.Context, row)
	if place := reflect.ValueOf(value); place.Kind() == reflect.Pointer && place.IsNil() {
		return nil
	}
	if sent, err := statement.Sent(value); err == nil {
		value = sent
	}
	for place := reflect.ValueOf(value); place.Kind() == reflect.Pointer; place = place.Elem() {
		if place.IsNil() {
			return nil
		}
		value = place.Elem().Interface()
	}
	return value
}
