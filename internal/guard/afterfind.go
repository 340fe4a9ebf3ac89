package guard

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/callbacks"

	"github.com/gormlock/gormlock/internal/fault"
)

// adopts reports whether the struct becomes a whole row of a model whose AfterFind computes more from a row that is read.
func (w *Write) adopts(returned reflect.Value) bool {
	return w.version.is() && w.returning.isWhole(returned) && w.model.Schema.AfterFind
}

// find runs AfterFind on a struct that has become its row. If GORM runs hooks after the write, they expect the state that the hooks before it left,
// and may undo it. Then nobody knows what the struct holds afterwards, so it counts as not read. The same holds if hooks are skipped.
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
