package gormlock

import (
	"reflect"
	"runtime"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// mayBeSave tells an update of all columns of the struct itself, as Save makes it.
func mayBeSave(stmt *gorm.Statement) bool {
	if len(stmt.Selects) != 1 || stmt.Selects[0] != "*" {
		return false
	}
	return samePointer(stmt.Model, stmt.Dest) ||
		reflect.TypeOf(stmt.Dest).Kind() == reflect.Struct && reflect.TypeOf(stmt.Dest) == reflect.TypeOf(stmt.Model)
}

// isSave tells Save from Select("*").Updates, which looks the same to a callback. It is asked only where no row was
// written: Save must fail or insert then, or GORM's own upsert would follow, while an update must not insert.
func isSave() bool {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers)])
	for {
		frame, more := frames.Next()
		if frame.Function == "gorm.io/gorm.(*processor).Execute" {
			caller, _ := frames.Next()
			return caller.Function == "gorm.io/gorm.(*DB).Save"
		}
		if !more {
			return false
		}
	}
}

// isNew tells whether a struct that Save found no row for can be one that has not been stored yet: it has a key that
// the application made, and no version. Where 0 is a version a row can have, it cannot.
func (w *versionWrite) isNew(row *versionRow) bool {
	return w.checked && !w.model.column.loaded(row.expected)
}

// insertInstead stores the new struct by a plain INSERT: GORM's own way, an upsert, would overwrite a row that another
// writer makes in between. Associations and hooks are the update's, as they are in GORM.
func (w *versionWrite) insertInstead(db *gorm.DB) error {
	row := w.rows[0].row
	if !row.CanAddr() {
		row = reflect.New(row.Type()).Elem()
		row.Set(w.rows[0].row)
	}
	tx := db.Session(&gorm.Session{NewDB: true, SkipHooks: true}).Omit(clause.Associations)
	sameTable(tx.Statement, db.Statement)
	if err := tx.Create(row.Addr().Interface()).Error; err != nil {
		return err
	}
	w.inserted, db.RowsAffected = true, 1
	return nil
}

// sameTable lets a statement speak of the table of another one, which may have been named by the caller.
func sameTable(stmt, as *gorm.Statement) { stmt.Table, stmt.TableExpr = as.Table, as.TableExpr }
