package invariants

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/tests/invariants/internal/models"
)

// shape is a model: a kind of key, of version, and a mode.
type shape struct {
	name    string
	model   reflect.Type
	schema  *schema.Schema
	version *schema.Field
	table   string
	first   int64 // the first version of integers
	key     func(row reflect.Value, n int64, foreign bool)
	foreign bool // keys have a spelling that the server does not give back
	generic models.Generic
}

func shapeOf(m models.Model, first int64, key func(row reflect.Value, n int64, foreign bool)) *shape {
	s := &shape{model: m.Type, first: first, key: key, generic: m.Generic}
	s.name = s.model.Name()
	var err error
	if s.schema, err = schema.Parse(reflect.New(s.model).Interface(), &sync.Map{}, schema.NamingStrategy{}); err != nil {
		panic(err)
	}
	s.table = s.schema.Table
	for _, f := range s.schema.Fields {
		if strings.HasPrefix(f.Tag.Get("gormlock"), "version") {
			s.version = f
		}
	}
	probe := []reflect.Value{reflect.New(s.model), reflect.New(s.model)}
	key(probe[0].Elem(), 1, false)
	key(probe[1].Elem(), 1, true)
	s.foreign = fmt.Sprint(s.keyOf(probe[0].Elem())) != fmt.Sprint(s.keyOf(probe[1].Elem()))
	return s
}

func intKey(row reflect.Value, n int64, _ bool) { row.FieldByName("ID").SetInt(n) }

// pairKey gives keys of two parts.
func pairKey(org int64) func(row reflect.Value, n int64, foreign bool) {
	return func(row reflect.Value, n int64, _ bool) {
		row.FieldByName("Org").SetInt(org)
		row.FieldByName("No").SetInt(n)
	}
}

// textKey gives keys in two spellings: as the server gives them back, and as a program may have written them.
func textKey(server, program string) func(row reflect.Value, n int64, foreign bool) {
	return func(row reflect.Value, n int64, foreign bool) {
		format := server
		if foreign {
			format = program
		}
		row.FieldByName("ID").SetString(fmt.Sprintf(format, n))
	}
}

var (
	uuidKey = textKey("abcdef00-0000-4000-8000-%012d", "ABCDEF00-0000-4000-8000-%012d")
	charKey = textKey("k%-11d", "k%d")
	decKey  = textKey("%d.0", "%d")
	strKey  = textKey("k-%d", "k-%d")
)

// shapes are all models. The first is the plainest.
var shapes = []*shape{
	shapeOf(models.OfPlain, 1, intKey), shapeOf(models.OfHooked, 1, intKey), shapeOf(models.OfPointer, 1, intKey), shapeOf(models.OfNull, 1, intKey),
	shapeOf(models.OfSmall, 7, intKey), shapeOf(models.OfZero, 0, intKey), shapeOf(models.OfRails, 0, intKey), shapeOf(models.OfRailsNull, 0, intKey),
	shapeOf(models.OfRailsPair, 0, pairKey(0)), shapeOf(models.OfHibernate, 0, strKey), shapeOf(models.OfHibernateTime, 0, uuidKey), shapeOf(models.OfTimed, 1, intKey),
	shapeOf(models.OfTimedMilli, 1, pairKey(7)), shapeOf(models.OfTimedSecond, 1, intKey), shapeOf(models.OfXmin, 1, intKey), shapeOf(models.OfXminUUID, 1, uuidKey),
	shapeOf(models.OfPair, 1, pairKey(0)), shapeOf(models.OfUUID, 1, uuidKey), shapeOf(models.OfChar, 1, charKey), shapeOf(models.OfCharZero, 0, charKey),
	shapeOf(models.OfNumeric, 1, decKey), shapeOf(models.OfText, 1, strKey), shapeOf(models.OfNarrow, 1, intKey), shapeOf(models.OfNested, 1, intKey),
}

func shapeNamed(name string) *shape {
	for _, s := range shapes {
		if s.name == name {
			return s
		}
	}
	panic("no shape " + name)
}

// shapeOfTable is the model of a table; nil where it is that of no model.
func shapeOfTable(table string) *shape {
	for _, s := range slices.Concat(shapes, family, rooted) {
		if s.table == table {
			return s
		}
	}
	return nil
}

func (s *shape) has(field string) bool { return s.schema.LookUpField(field) != nil }

func (s *shape) soft() bool { return s.has("DeletedAt") }

func (s *shape) hooks() bool {
	_, ok := reflect.New(s.model).Interface().(interface{ AfterSave(*gorm.DB) error })
	return ok
}

func (s *shape) xmin() bool  { return s.version.DBName == "xmin" }
func (s *shape) timed() bool { return s.version.FieldType == reflect.TypeFor[time.Time]() }

// keyOf is the key of a struct by column.
func (s *shape) keyOf(row reflect.Value) map[string]any {
	key := map[string]any{}
	for _, f := range s.schema.PrimaryFields {
		key[f.DBName], _ = f.ValueOf(context.Background(), reflect.Indirect(row))
	}
	return key
}

// where is the condition that names the row of a struct.
func (s *shape) where(row any) clause.Expression { return s.whereIn(row, clause.CurrentTable) }

// whereIn is the condition in SQL that calls the table so.
func (s *shape) whereIn(row any, table string) clause.Expression {
	v := reflect.Indirect(reflect.ValueOf(row))
	var all []clause.Expression
	for _, f := range s.schema.PrimaryFields {
		value, _ := f.ValueOf(context.Background(), v)
		all = append(all, clause.Eq{Column: clause.Column{Table: table, Name: f.DBName}, Value: value})
	}
	return clause.And(all...)
}

// versionOf is the version of a struct: an int64, a time.Time, or nil where it is NULL.
func (s *shape) versionOf(row any) any {
	value, _ := s.version.ValueOf(context.Background(), reflect.Indirect(reflect.ValueOf(row)))
	return plainVersion(value)
}

func plainVersion(value any) any {
	switch v := value.(type) {
	case time.Time:
		return v.UTC()
	case sql.NullInt64:
		if !v.Valid {
			return nil
		}
		return v.Int64
	case sql.NullInt32:
		if !v.Valid {
			return nil
		}
		return int64(v.Int32)
	}
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	if v.CanUint() {
		return int64(v.Uint())
	}
	return v.Int()
}

func (s *shape) versionField(row any) reflect.Value {
	return s.version.ReflectValueOf(context.Background(), reflect.Indirect(reflect.ValueOf(row)))
}

func (s *shape) keyColumns() (columns []clause.Column) {
	for _, name := range s.schema.PrimaryFieldDBNames {
		columns = append(columns, clause.Column{Name: name})
	}
	return columns
}

// setVersion gives a struct a version.
func (s *shape) setVersion(row, version any) {
	if err := s.version.Set(context.Background(), reflect.Indirect(reflect.ValueOf(row)), version); err != nil {
		panic(err)
	}
}

// unread reports whether a struct holds no version that a row can have: zero, where rows do not begin at 0, or the one that gormlock writes.
func (s *shape) unread(row any) bool {
	switch v := s.versionOf(row).(type) {
	case nil:
		return true
	case time.Time:
		return v.Before(seedTime)
	case int64:
		kind := s.version.IndirectFieldType
		return v == 0 && (s.first > 0 || s.xmin()) || v < 0 || v == math.MaxInt64 || kind.Kind() >= reflect.Uint && kind.Kind() <= reflect.Uint32 && v == 1<<kind.Bits()-1
	}
	return false
}

func sameVersion(a, b any) bool {
	if x, ok := a.(time.Time); ok {
		y, ok := b.(time.Time)
		return ok && x.Equal(y)
	}
	return a == b
}

// after reports whether version a is later than b.
func after(a, b any) bool {
	switch x := a.(type) {
	case int64:
		y, ok := b.(int64)
		return !ok || x > y
	case time.Time:
		y, ok := b.(time.Time)
		return !ok || x.After(y)
	}
	return false
}

// auditKey is how the audit names the row of a struct.
func (s *shape) auditKey(row any) string {
	var parts []string
	for _, f := range s.schema.PrimaryFields {
		value, _ := f.ValueOf(context.Background(), reflect.Indirect(reflect.ValueOf(row)))
		text := strings.TrimRight(fmt.Sprint(value), " ")
		switch kind := f.TagSettings["TYPE"]; {
		case kind == "uuid":
			text = strings.ToLower(text)
		case strings.HasPrefix(kind, "numeric") && text != "" && !strings.Contains(text, "."):
			text += ".0"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "/")
}

// pointer is a new struct of the model.
func (s *shape) pointer() any { return reflect.New(s.model).Interface() }
