package guard

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// guard is one condition for writing a row: its version, its fence, or that its columns are unchanged.
type guard interface {
	// owns reports whether the guard itself assigns the column. Other assignments to it are left out.
	owns(column string) bool
	// assign writes the guard's own assignment in an update, after others if some were written. It reports whether anything is written now.
	assign(b builder, written bool) bool
	// hold writes the guard's condition on a row, after an AND.
	hold(b builder)
	// insert adds the guard's column to new rows.
	insert(b builder, values *clause.Values)
	// conflict makes an upsert update found rows only if the guard allows it.
	conflict(b builder, found *clause.OnConflict)
	// why returns why a row was not written, from the row as it is now. It returns nil if this guard was not the reason.
	why(j *judge, stmt *gorm.Statement, row *Row, current reflect.Value) error
}
