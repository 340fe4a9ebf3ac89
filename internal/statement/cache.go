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
		return !ok || visit(s)
	})
}
