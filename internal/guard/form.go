package guard

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/form"
)

// asCalled is the write as its caller gave it to GORM.
func (w *Write) asCalled(stmt *gorm.Statement) form.Write {
	return form.Write{Model: w.model, Structs: &w.memory, Stmt: stmt}
}

// refuseUnknown fails a write whose Select names what the model does not have.
func (w *Write) refuseUnknown(db *gorm.DB) {
	if db.Error == nil && !w.intent.Touches() {
		refuseBefore(db, w.asCalled(db.Statement).Unknown(w.op == OpDelete))
	}
}

// refuseLeftOut fails an update if GORM would leave out a part that the caller asks for, before anything is stored.
func (w *Write) refuseLeftOut(db *gorm.DB) {
	if !w.version.is() || w.intent.Touches() {
		return
	}
	called := w.asCalled(db.Statement)
	for _, err := range [...]error{called.LeftOut(), called.Barred()} {
		if db.Error == nil {
			refuseBefore(db, err)
		}
	}
}

// nothingLeft is the error of an update of which nothing is left.
func (w *Write) nothingLeft(stmt *gorm.Statement) error {
	if w.intent.Touches() {
		return nil
	}
	return w.asCalled(stmt).NothingLeft()
}

// refuseBefore fails a write before any of it is stored, if there is an error.
func refuseBefore(db *gorm.DB, err error) {
	if err != nil {
		fault.Add(db, err)
	}
}
