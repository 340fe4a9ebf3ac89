package guard

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/children"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/shared"
	"github.com/gormlock/gormlock/internal/statement"
)

// BeforeUpdate decides which version each row must have, after the hooks and the belongs-to associations.
func BeforeUpdate(db *gorm.DB) {
	refuseRenewed(db, false)
	shared.Keep(db, true)
	w := writeOf(db.Statement)
	if w == nil || db.Error != nil {
		return
	}
	save := mayBeSave(db.Statement) && !w.batch
	w.where.mustWrite = save && (w.version.is() || w.unchanged().guards() || w.intent.Merges())
	w.where.filtered = isFiltered(db.Statement) && !w.intent.Touches()
	switch {
	case w.intent.Touches():
		w.op, w.version.forced = OpTouch, true
	case save:
		w.op = OpSave
	}
	if err := cmp.Or(w.nothingLeft(db.Statement), w.refuseJob(db.Statement), w.leaveOutRenewed(db.Statement), w.refuseSaveOfMap(db.Statement), w.misread(db.Statement), w.prepare(db.Statement)); err != nil {
		w.refuse(db, err)
		return
	}
	if !isBare(db.Statement) {
		_, w.where.ownSet = db.Statement.Clauses["SET"]
	}
	if w.where.ownSet && !w.version.is() && !w.unchanged().guards() {
		w.rows, w.batch = nil, false // it is about the rows that its own conditions find, as in GORM
	}
	w.everywhere(db.Statement)
	w.where.addKey = (w.where.ownSet || w.where.partialKey && !w.batch) && len(w.rows) > 0
	w.bindKey(db.Statement)
	w.wantAssigned(db.Statement)
	w.wantWholeRows(db.Statement)
	w.arm(db.Statement)
}

// refuseSaveOfMap refuses a Save of a map under conditions: if they do not hold, GORM stores the map without them.
func (w *Write) refuseSaveOfMap(stmt *gorm.Statement) error {
	if !w.version.is() || !w.where.filtered || !statement.FromMap(stmt.Dest) || !slices.Equal(stmt.Selects, []string{"*"}) || !statement.InSave() {
		return nil
	}
	return fmt.Errorf("gormlock: %s: Save of a map stores it even if the conditions of Where do not hold: use Updates", w.model.Schema.Name)
}

// AfterUpdate compares what was written with what should have been written, before associations are saved.
func AfterUpdate(db *gorm.DB) {
	refuseRenewed(db, true)
	shared.Part(db)
	refuseNothing(db)
	if w := writeOf(db.Statement); w != nil {
		w.refuseLateHolder(db)
		w.settle(db)
		w.noteStored(db)
		w.omitAsBefore(db.Statement)
	}
	shared.GiveBack(db)
	keepReturned(db)
	children.RefuseTwinsOfWritten(db)
	shared.OwnKeys(db, true)
	children.NoticeMoved(db)
}

// refuseNothing fails an update that sets nothing. GORM sends no statement for it, so its condition on the row would not be checked.
func refuseNothing(db *gorm.DB) {
	if db.Error == nil && db.Statement.SQL.Len() == 0 && asked.Of(db.Statement).Compares() {
		fault.Add(db, fmt.Errorf("gormlock: update %s: nothing is set, so ExpectVersion, IfUnchanged and IfMatch compare nothing: use Touch or VerifyVersion", statement.TableName(db.Statement)))
	}
}

// SetsNothing reports whether an update with this SET writes no row: GORM sends no statement for it, or it only names the version.
func SetsNothing(stmt *gorm.Statement, set clause.Set) bool {
	w := writeOf(stmt)
	if w == nil || !w.version.is() || len(set) == 0 {
		return len(set) == 0
	}
	others := slices.ContainsFunc(set, func(a clause.Assignment) bool { return !w.version.owns(a.Column.Name) })
	return !others && !w.version.forced && !w.where.mustWrite
}

// BeforeDelete decides which version each row must have. A soft delete is really an update, so its version moves.
func BeforeDelete(db *gorm.DB) {
	refuseRenewed(db, false)
	w := writeOf(db.Statement)
	if w == nil || db.Error != nil {
		return
	}
	w.where.filtered = isFiltered(db.Statement)
	if err := cmp.Or(w.misread(db.Statement), w.prepare(db.Statement)); err != nil {
		w.refuse(db, err)
		return
	}
	w.where.addKey = w.where.partialKey && len(w.rows) == 1
	w.bindKey(db.Statement)
	w.everywhere(db.Statement)
	w.wantAssigned(db.Statement)
	w.wantWholeRows(db.Statement)
	w.arm(db.Statement)
}

// AfterDelete compares what was deleted with what should have been deleted.
func AfterDelete(db *gorm.DB) {
	refuseRenewed(db, true)
	if w := writeOf(db.Statement); w != nil {
		w.settle(db)
	}
	keepReturned(db)
}

// BeforeCreate decides what a create with a conflict clause does to the versions of existing rows.
func BeforeCreate(db *gorm.DB) {
	refuseRenewed(db, false)
	shared.Keep(db, false)
	w := writeOf(db.Statement)
	if w == nil || db.Error != nil {
		return
	}
	if err := cmp.Or(w.misread(db.Statement), w.refuseJob(db.Statement), w.prepareCreate(db.Statement)); err != nil {
		w.refuse(db, err)
		return
	}
	w.arm(db.Statement)
}

// AfterCreate puts versions into the structs, and compares the rows of an upsert.
func AfterCreate(db *gorm.DB) {
	refuseRenewed(db, true)
	shared.Part(db)
	if w := writeOf(db.Statement); w != nil {
		w.settleCreate(db)
		w.noteStored(db)
	}
	shared.GiveBack(db)
	children.RefuseTwinsOfWritten(db)
	shared.OwnKeys(db, true)
	children.NoticeMoved(db)
}

// mayBeSave reports whether this is an update of all columns of the struct itself, as Save makes it.
func mayBeSave(stmt *gorm.Statement) bool {
	if len(stmt.Selects) != 1 || stmt.Selects[0] != "*" {
		return false
	}
	return statement.SamePointer(stmt.Model, stmt.Dest) ||
		reflect.TypeOf(stmt.Dest).Kind() == reflect.Struct && reflect.TypeOf(stmt.Dest) == reflect.TypeOf(stmt.Model)
}
