package children

import (
	"reflect"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/statement"
)

// StoreOnce removes repeated pointers from the structs of an association that GORM saves. A struct can be there twice under two parents, or
// because it was appended again after a rollback. GORM would store it twice, and give the struct the key of the second row.
func StoreOnce(stmt *gorm.Statement) {
	given := reflect.Indirect(reflect.ValueOf(stmt.Dest))
	if given.Kind() != reflect.Slice || given.Type().Elem().Kind() != reflect.Pointer || given.Len() < 2 || !statement.IsAssociation(stmt) {
		return
	}
	seen := make(map[uintptr]bool, given.Len())
	once := reflect.New(given.Type())
	for i := range given.Len() {
		if at := given.Index(i).Pointer(); !seen[at] || at == 0 {
			seen[at] = true
			once.Elem().Set(reflect.Append(once.Elem(), given.Index(i)))
		}
	}
	if once.Elem().Len() == given.Len() {
		return
	}
	if statement.SamePointer(stmt.Model, stmt.Dest) || statement.IsSame(stmt.Model, stmt.Dest) {
		stmt.Model = once.Interface()
	}
	stmt.Dest, stmt.ReflectValue = once.Interface(), once.Elem()
}
