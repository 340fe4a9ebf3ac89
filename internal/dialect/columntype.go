package dialect

import (
	"reflect"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// namesType is a Go type that says what GORM makes a column of, as gorm.io/datatypes has them.
type namesType interface {
	GormDBDataType(db *gorm.DB, field *schema.Field) string
}

var namesItsType = reflect.TypeFor[namesType]()

// ColumnType is the type of a column as GORM's migrator makes it, in small letters.
func ColumnType(db *gorm.DB, field *schema.Field) string {
	kind := ""
	if reflect.PointerTo(field.IndirectFieldType).Implements(namesItsType) {
		kind = reflect.New(field.IndirectFieldType).Interface().(namesType).GormDBDataType(db, field) //nolint:forcetypeassert // it implements it
	}
	if kind == "" {
		kind = db.DataTypeOf(field)
	}
	return strings.ToLower(strings.TrimSpace(kind))
}
