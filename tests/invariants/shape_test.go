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
	generic generic
}

// generic is what the generics API does with the model.
type generic struct {
	updates func(db *gorm.DB, s any, opts ...clause.Expression) error
	update  func(db *gorm.DB, where clause.Expression, column string, value any, opts ...clause.Expression) error
	set     func(db *gorm.DB, where clause.Expression, set []clause.Assigner, opts ...clause.Expression) error
	delete  func(db *gorm.DB, where clause.Expression, opts ...clause.Expression) error
	create  func(db *gorm.DB, s any, opts ...clause.Expression) error
	first   func(db *gorm.DB, where clause.Expression) (any, error)
}

func shapeOf[T any](first int64, key func(row reflect.Value, n int64, foreign bool)) *shape {
	ctx := func(db *gorm.DB) context.Context { return db.Statement.Context }
	s := &shape{model: reflect.TypeFor[T](), first: first, key: key, generic: generic{
		updates: func(db *gorm.DB, s any, opts ...clause.Expression) error {
			_, err := gorm.G[T](db, opts...).Updates(ctx(db), *s.(*T))
			return err
		},
		update: func(db *gorm.DB, where clause.Expression, column string, value any, opts ...clause.Expression) error {
			_, err := gorm.G[T](db, opts...).Where(where).Update(ctx(db), column, value)
			return err
		},
		set: func(db *gorm.DB, where clause.Expression, set []clause.Assigner, opts ...clause.Expression) error {
			_, err := gorm.G[T](db, opts...).Where(where).Set(set...).Update(ctx(db))
			return err
		},
		delete: func(db *gorm.DB, where clause.Expression, opts ...clause.Expression) error {
			_, err := gorm.G[T](db, opts...).Where(where).Delete(ctx(db))
			return err
		},
		create: func(db *gorm.DB, s any, opts ...clause.Expression) error {
			return gorm.G[T](db, opts...).Create(ctx(db), s.(*T))
		},
		first: func(db *gorm.DB, where clause.Expression) (any, error) {
			v, err := gorm.G[T](db).Where(where).First(ctx(db))
			return &v, err
		},
	}}
	s.name = s.model.Name()
	var err error
	if s.schema, err = schema.Parse(new(T), &sync.Map{}, schema.NamingStrategy{}); err != nil {
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
	shapeOf[Plain](1, intKey), shapeOf[Hooked](1, intKey), shapeOf[Pointer](1, intKey), shapeOf[Null](1, intKey),
	shapeOf[Small](7, intKey), shapeOf[Zero](0, intKey), shapeOf[Rails](0, intKey), shapeOf[RailsNull](0, intKey),
	shapeOf[RailsPair](0, pairKey(0)), shapeOf[Hibernate](0, strKey), shapeOf[HibernateTime](0, uuidKey), shapeOf[Timed](1, intKey),
	shapeOf[TimedMilli](1, pairKey(7)), shapeOf[TimedSecond](1, intKey), shapeOf[Xmin](1, intKey), shapeOf[XminUUID](1, uuidKey),
	shapeOf[Pair](1, pairKey(0)), shapeOf[UUID](1, uuidKey), shapeOf[Char](1, charKey), shapeOf[CharZero](0, charKey),
	shapeOf[Numeric](1, decKey), shapeOf[Text](1, strKey), shapeOf[Narrow](1, intKey), shapeOf[Nested](1, intKey),
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

// setVersion gives a struct a version.
func (s *shape) setVersion(row, version any) {
	if err := s.version.Set(context.Background(), reflect.Indirect(reflect.ValueOf(row)), version); err != nil {
		panic(err)
	}
}

// unread reports whether a struct holds no version that a row can have. Where the first version is 0, zero is a version,
// and one that no row has stands for none.
func (s *shape) unread(row any) bool {
	switch v := s.versionOf(row).(type) {
	case nil:
		return true
	case time.Time:
		return v.Before(seedTime)
	case int64:
		return v == 0 && s.first > 0 || v < 0 || v == math.MaxInt64
	}
	return false
}

// unreadMark reports whether the column has a version that stands for none, as zero is one.
func (s *shape) unreadMark() bool { return s.first == 0 && !s.timed() }

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
