package guard

import (
	"reflect"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/reading"
	"github.com/gormlock/gormlock/internal/statement"
)

// A child with a key that was not read may be new, or stand for a row. If the returned row has the version of new rows, it can still be another's.
// Only a child that has all columns of its row, or that was inserted, gets the version.

// mirrorsRow reports whether a child has the columns of the returned row, as far as columns keep values exactly.
func (w *Write) mirrorsRow(stmt *gorm.Statement, from, child reflect.Value) bool {
	for _, field := range w.model.Schema.FieldsByDBName {
		if !field.Readable || !field.Updatable || field == w.version.Field || reading.SameIn(field, from, child) {
			continue
		}
		stored, _ := field.ValueOf(stmt.Context, from)
		held, _ := field.ValueOf(stmt.Context, child)
		if !statement.SameValue(stored, held, column.TickIn(stmt.DB, field)) {
			return false
		}
	}
	return true
}
