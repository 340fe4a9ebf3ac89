package reading

import (
	"reflect"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
)

// arrayKey is the setting of a statement with the array of the list that it reads into.
const arrayKey = "gormlock:array"

// noteArray notes the array of a list that a query of a transaction reads into. GORM reads the first rows into this array, and continues in a new
// one if there are more. Then the program may have pointers into the first array.
func noteArray(db *gorm.DB) {
	stmt := db.Statement
	list := reflect.Indirect(reflect.ValueOf(stmt.Dest))
	if list.Kind() != reflect.Slice || list.Cap() == 0 || list.Type().Elem().Kind() != reflect.Struct || db.DryRun || db.Error != nil {
		return
	}
	if journal.Of(stmt) != nil && (stmt.Schema == nil || list.Type().Elem() != stmt.Schema.ModelType || model.NeedsJournal(db, stmt.Schema)) {
		db.InstanceSet(arrayKey, list.Slice(0, list.Cap()))
	}
}

// outgrown is the array of the list that a query has read into, if the list has another one now.
func outgrown(stmt *gorm.Statement) (array reflect.Value, is bool) {
	list := reflect.Indirect(reflect.ValueOf(stmt.Dest))
	if list.Kind() != reflect.Slice || list.Type().Elem().Kind() != reflect.Struct {
		return array, false
	}
	value, has := stmt.InstanceGet(arrayKey)
	if !has {
		return array, false
	}
	array = value.(reflect.Value) //nolint:forcetypeassert // nothing else is
	return array, list.Pointer() != array.Pointer()
}

// noteOutgrown notes the structs in the old array.
func (p *placed) noteOutgrown(stmt *gorm.Statement) {
	if array, is := outgrown(stmt); is {
		p.noteMore(array)
	}
}
