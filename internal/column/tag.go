package column

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/internal/dialect"
)

// ParseVersion reads the words after `version` in the tag of a field, and finds out what its column can hold in this database.
func ParseVersion(db *gorm.DB, field *schema.Field, words []string) (*Version, error) {
	c, err := ReadVersion(field, words)
	if err == nil && c.IsTemporal() {
		c.Tick = TickIn(db, field)
		c.zone.asks = dialect.Of(db).DropsZone(db.DataTypeOf(field))
		c.zone.matters = c.zone.asks || dialect.Of(db).IsSQLite() // SQLite keeps a text with its zone
		if far, decided := dialect.Of(db).FarInTime(db.DataTypeOf(field)); decided {
			c.FarInTime = far
		}
	}
	if err != nil || !c.IsInteger() {
		return c, err
	}
	c.Largest = largestIn(db, field, c.Largest)
	c.Narrow = largestOf(field, "") < largestIn(db, field, math.MaxInt64)
	if value, ok := field.DefaultValueInterface.(int64); ok && value != c.Initial {
		return nil, fmt.Errorf("default:%d disagrees with the first version %d: write default:%d", value, c.Initial, c.Initial)
	}
	return c, nil
}

// ReadVersion is ParseVersion without a database: Largest is the largest number that the field's type holds.
func ReadVersion(field *schema.Field, words []string) (*Version, error) {
	c := &Version{Field: field, Initial: 1, Tick: time.Microsecond, FarInTime: farInTime}
	if field.DBName == "" {
		return nil, fmt.Errorf("a version field must be a column")
	}
	if field.PrimaryKey {
		return nil, fmt.Errorf("a version field cannot be the primary key")
	}
	if field.Serializer != nil {
		return nil, fmt.Errorf("a version field must hold what its column holds, without a serializer: remove the serializer")
	}
	if !c.shapedAs(field.FieldType) {
		return nil, fmt.Errorf("a version field must be an integer, a pointer to one, a sql.Null integer or a time.Time, not %s", field.FieldType)
	}
	given := ""
	for _, word := range words {
		word = strings.TrimSpace(word)
		number, isInitial := strings.CutPrefix(word, "initial=")
		switch {
		case isInitial:
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("initial=%s: the first version must be a whole number, 0 or more", number)
			}
			c.Initial, given = n, word
		case c.mode == "" && (word == railsMode || word == hibernateMode || word == xminMode):
			c.mode = word
		case c.mode != "":
			return nil, fmt.Errorf("%q after %s: a version has one mode", word, c.mode)
		default:
			return nil, fmt.Errorf("unknown mode %q: the modes are rails, hibernate, xmin and initial=N", word)
		}
	}
	if (c.IsRails() || c.IsHibernate()) && given == "" {
		c.Initial = 0
	}
	switch {
	case c.mode == xminMode && given != "":
		return nil, fmt.Errorf("%s: the server sets xmin: leave it out", given)
	case c.mode == xminMode:
		return c, c.asSystemColumn(field)
	case c.IsTemporal() && given != "":
		return nil, fmt.Errorf("%s: a time has no first number: leave it out", given)
	case c.IsTemporal() && strings.EqualFold(strings.TrimSpace(field.TagSettings["TYPE"]), "date"):
		return nil, fmt.Errorf("a version of type date is the same for two writes on one day: give it the type timestamptz")
	case c.IsTemporal() && c.IsRails():
		return nil, fmt.Errorf("a Rails lock column must be an integer, not %s", field.FieldType)
	case !field.Creatable || !field.Updatable || !field.Readable:
		return nil, fmt.Errorf("a version column must be readable and writable: remove the permission from the tag `gorm`")
	case !c.IsTemporal() && (field.AutoCreateTime > 0 || field.AutoUpdateTime > 0):
		return nil, fmt.Errorf("a version that is a number cannot be a time that GORM sets: make it a time.Time, rename it, or tag it `gorm:\"autoCreateTime:false;autoUpdateTime:false\"`")
	}
	if c.IsTemporal() {
		c.Tick = TickOf(field)
		return c, nil
	}
	c.Largest = largestOf(field, c.mode)
	return c, nil
}

// asSystemColumn checks the field of an xmin and sets its rules: xmin is read and never written, and no migration creates it.
func (c *Version) asSystemColumn(field *schema.Field) error {
	if field.FieldType.Kind() != reflect.Uint32 {
		return fmt.Errorf("the tag `version,xmin` needs a uint32 field, not %s", field.FieldType)
	}
	if field.DBName != "xmin" || field.Creatable || field.Updatable || !field.IgnoreMigration {
		return fmt.Errorf("tag the system column `gorm:\"column:xmin;->;-:migration\" gormlock:\"version,xmin\"`")
	}
	c.kind, c.Initial, c.Largest = systemVersion, 0, math.MaxUint32
	return nil
}

// TickOf is the precision of a temporal column by its declaration: a time that is written must come back unchanged.
func TickOf(field *schema.Field) time.Duration {
	precision, kind := 6, strings.ToLower(field.TagSettings["TYPE"])
	if open := strings.IndexByte(kind, '('); open >= 0 {
		if end := strings.IndexByte(kind, ')'); end > open {
			if n, err := strconv.Atoi(strings.TrimSpace(kind[open+1 : end])); err == nil {
				precision = n
			}
		}
	} else if field.Precision > 0 {
		precision = field.Precision
	}
	return time.Second / time.Duration(math.Pow10(max(0, min(6, precision))))
}

// TickIn is the precision of a temporal column in this database: its driver may have a precision of its own.
func TickIn(db *gorm.DB, field *schema.Field) time.Duration {
	if tick, decided := dialect.Of(db).Tick(db, field); decided {
		return tick
	}
	return TickOf(field)
}

// largestOf is the largest version that the field's type holds. A Rails lock column is an int4 unless its tag says otherwise.
func largestOf(field *schema.Field, mode string) int64 {
	largest := int64(math.MaxInt64)
	kind := field.IndirectFieldType
	if kind.Kind() == reflect.Struct {
		kind = kind.Field(0).Type
	}
	switch unread := unreadIn(kind); {
	case unread > 0:
		largest = unread - 1
	case kind.Kind() >= reflect.Int && kind.Kind() <= reflect.Int64:
		largest = 1<<(kind.Bits()-1) - 1
	}
	if _, declared := field.TagSettings["TYPE"]; mode == railsMode && (!declared || isInt4(field.TagSettings["TYPE"])) {
		largest = min(largest, math.MaxInt32)
	}
	return largest
}

// largestIn is the largest version that the column holds, at most largest. The column may hold less than the field's type.
func largestIn(db *gorm.DB, field *schema.Field, largest int64) int64 {
	column := strings.ToLower(db.DataTypeOf(field))
	if holds, decided := dialect.Of(db).Largest(column); decided {
		return min(largest, holds)
	}
	switch {
	case strings.HasPrefix(column, "smallint"), column == "int2":
		largest = min(largest, math.MaxInt16)
	case isInt4(column) && !dialect.Of(db).IsSQLite():
		largest = min(largest, math.MaxInt32)
	}
	return largest
}

// isInt4 reports whether a column's type is PostgreSQL's integer.
func isInt4(column string) bool {
	switch strings.ToLower(column) {
	case "integer", "int", "int4":
		return true
	}
	return false
}
