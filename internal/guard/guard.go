package guard

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// guard is one thing that must hold for a row to be written: its version, its fence, or that its columns are unchanged.
type guard interface {
	// owns reports whether the guard itself assigns the column, so that what others assign to it is left out.
	owns(column string) bool
	// assign writes the guard's own assignment in an update, behind others if some are written, and reports whether
	// any is written then.
	assign(b builder, written bool) bool
	// hold writes what must hold of a row, behind an AND.
	hold(b builder)
	// insert gives new rows the guard's column.
	insert(b builder, values *clause.Values)
	// conflict lets rows that an upsert finds be updated where the guard allows it.
	conflict(b builder, found *clause.OnConflict)
	// why returns why a row was not written, judging by the row as it is now; nil if this guard was not the reason.
	why(w *Write, stmt *gorm.Statement, row *Row, current reflect.Value) error
}

// guards are those that the statement has: nil for the others.
func (w *Write) guards() [3]guard {
	var all [3]guard
	if w.fence != nil {
		all[0] = w.fence
	}
	if w.version.is() {
		all[1] = &w.version
	}
	if unchanged := w.intent.columns(); unchanged != nil {
		all[2] = unchanged
	}
	return all
}
