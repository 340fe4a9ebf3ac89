package guard

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// settle ends an update or delete: it changes the structs according to the server's answer, or returns the error of a conflict.
func (w *Write) settle(db *gorm.DB) {
	w.returning.collect(db.Statement)
	if row := w.returning.first(); w.returning != nil && w.returning.bulk && row.IsValid() && db.Error == nil {
		w.returning.give(row, db.Statement.ReflectValue, nil)
	}
	w.observe(db)
	if err := w.whyRunning(db); err != nil {
		w.refuse(db, err)
		return
	}
	switch {
	case db.Error != nil:
		if !w.explainFence(db) && !w.explainKept(db) && !w.versionIsFull(db) {
			w.serializationFailure(db)
		}
	case w.isBypassed(db):
		w.refuseBypass(db)
	case w.savesElsewhere(db):
		w.refuse(db, fmt.Errorf("gormlock: %s: nothing was written: no row is as Where says, and Save would store the struct all the same: "+
			"use Updates, or give the struct to Save alone, without Model and Where", statement.TableName(db.Statement)))
	case w.intent.IsTentative() && db.RowsAffected == 0:
		w.outcome.none = true
	case w.built.nothing && w.built.named && !db.DryRun:
		w.where.filtered = true // nothing was to be written
		w.refuse(db, w.whyNone(db))
	case db.DryRun || !w.built.any || w.built.nothing:
		w.outcome.done = db.DryRun
	case w.leavesOwner(db):
		w.refuse(db, w.whyLeft(db))
	case w.decides() && len(w.rows) > 0 && int(db.RowsAffected) > w.distinct():
		err := w.tooMany(db)
		journal.Doom(db, err)
		w.refuse(db, err)
	case db.RowsAffected == 0 && w.mayMeanMore():
		if err := w.whyNone(db); err != nil {
			w.refuse(db, err)
			return
		}
		w.settleOne(db)
	case db.RowsAffected == 0 && !w.decides() && w.reused(db.Statement) != nil:
		w.refuse(db, w.reused(db.Statement))
	case w.batch && len(w.rows) > 0:
		w.settleBatch(db)
	case db.RowsAffected > 0 && w.leavesOut(db.Statement):
		if err := w.whyFencedMany(db); err != nil {
			w.refuse(db, err)
			return
		}
		w.settleOne(db)
	case db.RowsAffected > 0 || !w.decides():
		w.settleOne(db)
	default:
		w.refuse(db, w.whyNone(db))
	}
}

// savesElsewhere reports whether a Save of a struct to the rows of another Model has written none: GORM would go on and store the struct,
// overwriting the row with its key.
func (w *Write) savesElsewhere(db *gorm.DB) bool {
	stmt := db.Statement
	if db.RowsAffected > 0 || db.DryRun || !w.version.is() && !w.unchanged().guards() || w.op != OpUpdate || statement.SamePointer(stmt.Model, stmt.Dest) {
		return false
	}
	return reflect.Indirect(reflect.ValueOf(stmt.Dest)).Kind() == reflect.Struct && statement.InSave()
}

// tooMany is the error of a key that several rows have: rows that nobody has read were written too.
func (w *Write) tooMany(db *gorm.DB) error {
	what := statement.TableName(db.Statement)
	if len(w.rows) == 1 {
		what = w.rowName(db.Statement, w.named(db.Statement, &w.rows[0]).Key)
	}
	return fmt.Errorf("gormlock: %s: %d rows were written for %d: the key must be unique, also in the tables that inherit from this one", what, db.RowsAffected, w.distinct())
}

func (w *Write) settleOne(db *gorm.DB) {
	row := &w.single[0]
	if len(w.rows) > 0 {
		row = &w.rows[0]
	}
	for _, now := range w.returning.seen() {
		if err := w.whyKept(db, row, now); err != nil {
			w.refuse(db, err)
			return
		}
	}
	if len(w.rows) > 0 && db.RowsAffected > 0 {
		w.follow(db, &w.rows[0], w.returning.first())
	}
	if w.outcome.none = db.RowsAffected == 0; w.outcome.none {
		w.memory.Restore() // GORM has given the struct values that no row got
	}
	w.keepWritten(db.Statement)
}

func (w *Write) settleBatch(db *gorm.DB) {
	var from []reflect.Value // by row; nil if it is not known which rows were written
	if w.returning.has() {
		var err error
		if from, err = w.matched(db); err != nil {
			w.refuse(db, w.unlooked(db.Statement, &w.rows[0], err))
			return
		}
	}
	if w.decides() && int(db.RowsAffected) < w.distinct() {
		if err := w.whyFewer(db, from); err != nil {
			w.refuse(db, err)
			return
		}
	}
	for i := range from {
		if err := w.whyKept(db, &w.rows[i], from[i]); err != nil {
			w.refuse(db, err)
			return
		}
	}
	for i := range w.rows { // the caller's own conditions excluded some
		if from != nil && !from[i].IsValid() && int(db.RowsAffected) < w.distinct() {
			w.memory.RestoreRow(i)
		}
	}
	for i := range w.rows {
		switch {
		case from == nil:
			w.follow(db, &w.rows[i], reflect.Value{})
		case from[i].IsValid():
			w.follow(db, &w.rows[i], from[i])
		case w.built.rekeys && w.version.is() && w.rows[i].Struct.CanAddr():
			w.version.Write(w.rows[i].Struct, w.version.Unread()) // its row has a key by which it cannot be found
		}
	}
	w.keepWritten(db.Statement)
}

// follow updates the struct with the statement's changes of its row.
func (w *Write) follow(db *gorm.DB, row *Row, returned reflect.Value) {
	if !row.Struct.CanAddr() {
		return
	}
	if returned.IsValid() {
		w.returning.give(returned, row.Struct, w.model.Schema.Relationships.BelongsTo)
	}
	if w.op == OpDelete && !w.built.set {
		return
	}
	w.fence.follow(row.Struct)
	if w.version.is() {
		w.version.Write(row.Struct, w.versionAfter(row, returned))
		if w.adopts(returned) && !w.wasRow(row, returned) {
			w.find(db, row.Struct)
		}
	}
}

// wasRow reports whether the struct equaled its row before the write. The returned row shows it.
func (w *Write) wasRow(row *Row, returned reflect.Value) bool {
	compared := w.version.checked && !w.built.unchecked
	return row.mirrors(&w.version, compared) && (compared || w.version.IsInteger() && row.next.Equal(w.version.Read(returned)))
}

// versionAfter returns the version of a struct whose row was updated. It is the row's version if the struct equals the row now, either because it
// did before or because the whole row was returned. Otherwise the struct gets no version.
func (w *Write) versionAfter(row *Row, returned reflect.Value) column.Value {
	v := &w.version
	compared := v.checked && !w.built.unchecked
	switch {
	case w.returning.isWhole(returned) && (compared || !v.IsSystem()):
		return v.Read(returned)
	case w.built.unheld || w.built.rekeys && !returned.IsValid() || !row.mirrors(v, compared):
		return w.unread(row)
	case !compared && !v.IsInteger():
		return row.held // the row has another version, which the struct must not get
	case !w.built.bumps && !v.IsSystem():
		return row.held
	case returned.IsValid() && !v.IsInteger():
		return v.Read(returned)
	case v.IsSystem():
		return v.Zero()
	}
	return row.next
}
