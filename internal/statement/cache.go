package statement

import (
	"reflect"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// NameModel gives a statement its model if gorm.G's Set of a many2many association updates the related rows, because then GORM
// only sets the name of their table. GORM has parsed the model before.
func NameModel(db *gorm.DB) {
	stmt := db.Statement
	if stmt.Schema != nil || stmt.Table == "" || db.Error != nil || !ExecutedIn(associationUpdate) {
		return
	}
	EachParsed(db, func(s *schema.Schema) bool {
		if NameInStatement(s.Table) != stmt.Table {
			return true
		}
		stmt.Schema, stmt.Model = s, reflect.New(s.ModelType).Interface()
		return false
	})
}

// EachParsed visits the schemas that GORM has parsed for db, until visit returns false. GORM keeps them in an unexported
// field.
func EachParsed(db *gorm.DB, visit func(*schema.Schema) bool) {
	kept := reflect.ValueOf(db.Config).Elem().FieldByName("cacheStore")
	if kept.Kind() != reflect.Pointer || kept.Type() != reflect.TypeFor[*sync.Map]() {
		return
	}
	(*sync.Map)(kept.UnsafePointer()).Range(func(_, value any) bool {
		s, ok := value.(*schema.Schema)
		if ok {
			Await(s)
		}
		return !ok || visit(s)
	})
}

// parsed is the channel in a schema that GORM closes when it has parsed the schema.
var parsed, _ = reflect.TypeFor[schema.Schema]().FieldByName("initialized")

// Await waits until GORM has parsed a schema. GORM returns schemas of related models, in relations and from its cache, while another goroutine
// may still add relations to them.
func Await(s *schema.Schema) {
	if parsed.Type == reflect.TypeFor[chan struct{}]() {
		reflect.NewAt(parsed.Type, reflect.ValueOf(s).Elem().FieldByIndex(parsed.Index).Addr().UnsafePointer()).Elem().Recv()
	}
}
