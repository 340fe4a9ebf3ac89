package statement

import (
	"reflect"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// NameModel gives a statement its model where gorm.G's Set of a many2many association updates the related rows by the name
// of their table alone. GORM has parsed the model on its way there.
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

// EachParsed visits the schemas that GORM has parsed for db, until visit says that it has seen enough. GORM keeps them
// where no method leads.
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

// parsed is the field of a schema that GORM closes when it is through with it.
var parsed, _ = reflect.TypeFor[schema.Schema]().FieldByName("initialized")

// Await waits until GORM is through with a schema. It gives out those of related models, by relations and in its cache, while another goroutine
// may still put their own relations into them.
func Await(s *schema.Schema) {
	if parsed.Type == reflect.TypeFor[chan struct{}]() {
		reflect.NewAt(parsed.Type, reflect.ValueOf(s).Elem().FieldByIndex(parsed.Index).Addr().UnsafePointer()).Elem().Recv()
	}
}
