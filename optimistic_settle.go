package gormlock

import (
	"reflect"

	"gorm.io/gorm"
)

// settle ends a checked update or delete: with new versions in memory, or with the error of a conflict.
func (w *versionWrite) settle(db *gorm.DB) {
	switch {
	case db.Error != nil:
		if !w.explainFence(db) {
			w.serializationFailure(db)
		}
	case db.DryRun || !w.built || w.nothing:
		w.done = db.DryRun
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

// decides tells whether writing no row can be a conflict.
func (w *versionWrite) decides() bool { return w.compares() || w.fence.guards() }

// compares tells whether a row is written only as it was read.
func (w *versionWrite) compares() bool {
	return w.checked || w.intent.columns() != nil || w.save
}

func (w *versionWrite) settleOne(db *gorm.DB) {
	defer w.keepWritten(db.Statement)
	if len(w.rows) == 0 || db.RowsAffected == 0 {
		return
	}
	w.follow(&w.rows[0], w.returning.first())
}

// follow brings the struct to what the statement made of its row.
func (w *versionWrite) follow(row *versionRow, returned reflect.Value) {
	if !row.row.CanAddr() {
		return
	}
	column := w.model.column
	if returned.IsValid() {
		w.returning.give(returned, row.row, nil)
	}
	if w.op != opDelete || w.set {
		w.fence.follow(row.row)
	}
	switch {
	case column == nil || w.op == opDelete && !w.set:
	case !w.checked && (!column.loaded(row.expected) || column.kind != integerVersion):
		column.write(row.row, row.expected) // not known, or not checked: what the row has now is not ours to claim
	case !w.bumps && column.kind != systemVersion:
		column.write(row.row, row.expected)
	case column.kind == systemVersion && !returned.IsValid():
		column.write(row.row, version{}) // unknown: the struct must be read again
	case column.kind == integerVersion || !returned.IsValid():
		column.write(row.row, row.next)
	}
}

func (r *versionReturning) first() reflect.Value {
	if r.len() == 0 {
		return reflect.Value{}
	}
	return r.rows.Index(0)
}

func (w *versionWrite) settleBatch(db *gorm.DB) {
	stmt := db.Statement
	var returned map[string]reflect.Value
	if w.returning.has() {
		returned = w.returning.byKey(stmt)
	}
	distinct := 0
	for i := range w.rows {
		if !w.rows[i].twin {
			distinct++
		}
	}
	if w.decides() && int(db.RowsAffected) < distinct {
		if err := w.whyFewer(db, returned); err != nil {
			w.refuse(db, err)
			return
		}
		w.restoreOthers(returned)
	}
	for i := range w.rows {
		row := &w.rows[i]
		from, wrote := returned[row.name]
		if returned == nil || wrote {
			w.follow(row, from)
		}
	}
	w.keepWritten(stmt)
}

// restoreOthers puts the structs back whose rows the caller's own conditions left out.
func (w *versionWrite) restoreOthers(returned map[string]reflect.Value) {
	for i := range w.rows {
		if _, wrote := returned[w.rows[i].name]; !wrote {
			w.memory.restoreRow(i)
		}
	}
}
