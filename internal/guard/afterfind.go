package guard

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"

	"github.com/gormlock/gormlock/internal/fault"
)

// adopts reports whether the struct becomes a whole row, where AfterFind makes more of a row that is read.
func (w *Write) adopts(returned reflect.Value) bool {
	return w.version.is() && w.returning.isWhole(returned) && w.model.Schema.AfterFind
}

// find runs AfterFind on a struct that has become its row. Hooks that GORM runs after a write expect what those before it
// left, and may undo it: if there are any, nobody knows what the struct holds after both, so it counts as not read. So it does where hooks
// are skipped.
func (w *Write) find(db *gorm.DB, row reflect.Value) {
	s := w.model.Schema
	if s.AfterSave || s.AfterUpdate || s.AfterCreate || db.Statement.SkipHooks {
		w.version.Write(row, w.version.Unread())
		return
	}
	if found, is := row.Addr().Interface().(callbacks.AfterFindInterface); is {
		if err := found.AfterFind(db.Session(&gorm.Session{NewDB: true})); err != nil {
			w.version.Write(row, w.version.Unread())
			fault.Add(db, err)
		}
	}
}
