package guard

import (
	"cmp"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/asked"
	"github.com/gormlock/gormlock/internal/children"
	"github.com/gormlock/gormlock/internal/column"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/memory"
	"github.com/gormlock/gormlock/internal/model"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/unlinked"
	"github.com/gormlock/gormlock/internal/whereabouts"
)

// Write is a statement that writes a model with a version or a fence, or one that IfUnchanged guards. It is in the statement's clauses from before
// its transaction begins until after the transaction has ended.
type Write struct {
	judge
	of      *gorm.Statement
	outcome outcome      // its result
	table   *clause.Expr // as the caller named it; nil: the table of the model
	passes  passedOn     // what sessions in its hooks carry on with
	used    used

	drafted    []column.Value // the versions that its structs held, if nothing is sent
	draftedOne [1]column.Value

	before journal.Tally // what had happened in the transaction when this statement began
	path   int           // what the name of its table stood for then
}

// outcome is the result of a statement.
type outcome struct {
	opened bool // we began its transaction: see Open
	done   bool // the rows were written as asked
	undone bool // and were rolled back, in memory too, or may have been
	kept   bool // the journal of the transaction has them
	none   bool // no row was written
	lost   bool // of a claim: it may have written rows that were not returned
	over   bool // the statement has ended
	stays  bool // its own transaction has ended, and was committed, or may have been
}

// Op is the kind of a write, as its caller sees it.
type Op uint8

// What a write can be.
const (
	OpCreate Op = iota
	OpUpdate
	OpDelete
	OpSave
	OpTouch
	OpUpsert
	OpClaim
	OpVerify
)

func (op Op) String() string {
	return [...]string{"create", "update", "delete", "save", "touch", "upsert", "claim", "verify"}[op]
}

const writeClause = "gormlock:version_write"

// Build lets a Write be one of a statement's clauses, where it is found again. It writes nothing.
func (w *Write) Build(clause.Builder) {}

// writeOf is the Write of the statement, or nil.
func writeOf(stmt *gorm.Statement) *Write {
	w, _ := stmt.Clauses[writeClause].Expression.(*Write)
	if w == nil || w.outcome.over {
		return nil
	}
	return w
}

// RememberUpdate keeps the structs as they are before hooks and GORM change them, before the transaction begins.
func RememberUpdate(db *gorm.DB) {
	if saveAnew(db) {
		return
	}
	unlinked.Refuse(db)
	before := beginUse(db.Statement)
	refuseSession(db, OpUpdate)
	w := begin(db, OpUpdate)
	if w == nil {
		beginTally(db.Statement)
	} else {
		statement.Straighten(db.Statement)
		w.remember(db, db.Statement.Model)
		w.refuseKeyless(db)
		w.emptied = w.version.is() && statement.InClear(db.Statement)
		w.rememberNamed(db.Statement)
		w.refuseLeft(db, before)
		w.refuseUnknown(db)
		w.refuseLeftOut(db)
	}
}

// RememberCreate does the same for a create, which can also be given maps.
func RememberCreate(db *gorm.DB) {
	unlinked.RefuseMap(db)
	before := beginUse(db.Statement)
	refuseSession(db, OpCreate)
	w := begin(db, OpCreate)
	ownConflict(db.Statement, w != nil)
	if w == nil {
		beginTally(db.Statement)
	} else {
		children.StoreOnce(db.Statement)
		w.remember(db, db.Statement.Dest)
		w.refuseLeft(db, before)
		w.used.all, w.used.keyed = before.all, before.keyed
		w.upsert = upsertOf(db.Statement)
		w.refuseUnknown(db)
		w.refuseConditions(db)
	}
}

// RememberDelete does the same for a delete. Its key may come from Model if the destination has none.
func RememberDelete(db *gorm.DB) {
	unlinked.Refuse(db)
	before := beginUse(db.Statement)
	refuseSession(db, OpDelete)
	w := begin(db, OpDelete)
	if w == nil {
		beginTally(db.Statement)
		return
	}
	w.remember(db, db.Statement.Dest)
	w.rememberNamed(db.Statement)
	w.refuseKeyless(db)
	w.refuseLeft(db, before)
	w.refuseUnknown(db)
	if w.hasKeys(db.Statement) {
		return
	}
	w.refuseChildrenOfNobody(db)
	if statement.SamePointer(db.Statement.Dest, db.Statement.Model) {
		return
	}
	w.memory = memory.Structs{In: w.memory.In}
	w.remember(db, db.Statement.Model)
	w.refuseKeyless(db)
	w.where.ofModel = true
}

// hasKeys reports whether one of the structs has a key.
func (p *plan) hasKeys(stmt *gorm.Statement) bool {
	for i := range p.memory.Count {
		if key, _ := statement.KeyOf(stmt, p.model.Schema, p.memory.Row(i)); key != nil {
			return true
		}
	}
	return false
}

// begin puts a Write into the statement, if the model or a clause asks for one.
func begin(db *gorm.DB, op Op) *Write {
	stmt := db.Statement
	if db.Error != nil {
		return nil
	}
	if stmt.SQL.Len() > 0 && !db.DryRun {
		fault.Add(db, errBuilt())
		return nil
	}
	if stmt.Schema == nil {
		refuseWithoutModel(db)
		return nil
	}
	m := model.Of(db)
	if m == nil {
		return nil
	}
	if m.Err != nil {
		fault.Add(db, m.Err)
		return nil
	}
	intent := asked.Of(stmt)
	if m.Fence == nil && intent.OnlyIgnoresFence() && statement.InUnlinking() {
		intent = nil // it is the clause of the owner, from which GORM removes something
	}
	if m.Column == nil && m.Fence == nil && intent == nil {
		return nil
	}
	if err := cmp.Or(statement.Unending(db), mapped(stmt, m), unreadCondition(stmt, m), unlinks(stmt, m, intent)); err != nil {
		fault.Add(db, err)
		return nil
	}
	if stmt.SQL.Len() > 0 {
		fault.Add(db, errBuilt())
		return nil
	}
	refuseWithoutVersions(db, intent)
	if db.Error != nil {
		return nil
	}
	intent, err := intent.On(m)
	if err != nil {
		fault.Add(db, err)
		return nil
	}
	fence, err := FenceOf(m, stmt, intent)
	if err != nil {
		fault.Add(db, err)
		return nil
	}
	if m.Column != nil && m.Column.IsSystem() && !statement.IsPostgres(db) {
		fault.Add(db, fault.ErrNotPostgres)
		return nil
	}
	AskZone(stmt, m)
	w := &Write{of: stmt, table: stmt.TableExpr, passes: passedOnBy(stmt, intent), used: used{own: conditionsOf(stmt)}}
	w.memory.In = memory.WrittenTable(stmt, m.Schema)
	w.model, w.intent, w.op, w.version.Version, w.fence = m, intent, op, m.Column, fence
	w.job, w.dry = w.jobOf(stmt), db.DryRun
	if j := journal.Of(stmt); j != nil {
		w.path = j.Path()
	}
	w.before, _ = journal.Count(stmt, mayStoreMore(stmt))
	w.enter()
	return w
}

// leaveRunning removes the Write of another statement from this one, and returns it. In a hook, tx.WithContext and tx.Session carry on with the
// clauses of the hook's statement. That Write ends with its own statement.
func leaveRunning(stmt *gorm.Statement) *Write {
	around := writeOf(stmt)
	if around != nil {
		delete(stmt.Clauses, writeClause)
	}
	return around
}

// remember keeps the structs in value, if there are any.
func (w *Write) remember(db *gorm.DB, value any) {
	found, hole := w.memory.Find(w.model, value)
	w.batch = found && w.memory.Batch()
	switch {
	case !w.dry:
		w.memory.Recover()
		w.memory.Keep()
	case w.version.is():
		w.drafted = w.draftedOne[:0]
		for i := range w.memory.Count {
			w.drafted = append(w.drafted, w.version.Read(w.memory.Row(i)))
		}
	}
	if hole {
		fault.Add(db, fmt.Errorf("gormlock: %s: an element of the slice is nil: %w", w.model.Schema.Table, gorm.ErrInvalidValue))
	}
}

// End ends the transaction that GORM has begun for a statement, as end would.
func End(db *gorm.DB, end func(*gorm.DB)) {
	w := writeOf(db.Statement)
	if w != nil && w.outcome.opened {
		end(db)
		return // Close ends ours
	}
	if stays := journal.End(db, end); w != nil {
		w.outcome.stays = stays
	}
	if db.Error == nil {
		children.UndoLinks(db) // they have their keys, whatever error follows the commit
	}
}

// endOpened ends a transaction that Open has begun, as GORM ends its own.
func endOpened(db *gorm.DB) {
	if db.Error != nil {
		db.Rollback()
	} else {
		db.Commit()
	}
	db.Statement.ConnPool = db.ConnPool
}

// Close corrects the structs after the statement and its own transaction have ended, and forgets the statement.
func Close(db *gorm.DB) {
	endSave(db)
	doomStored(db)
	closeWrite(db)
	children.UndoLinks(db)
}

func closeWrite(db *gorm.DB) {
	w := writeOf(db.Statement)
	endUse(db.Statement)
	w.keepTried(db)
	if w == nil {
		return
	}
	w.outcome.over = true
	w.used.end(db.Statement, w)
	w.returning.restore(db.Statement)
	w.upsert.restore(db.Statement)
	for i, version := range w.drafted { // GORM has set defaults, and the assignments of a map, as if they were stored
		if row := w.memory.Row(i); row.CanAddr() && !w.version.Read(row).Equal(version) {
			w.version.Write(row, version)
		}
	}
	if w.outcome.opened {
		w.outcome.stays = journal.End(db, endOpened)
	}
	if db.Error == nil || db.DryRun {
		return
	}
	_, own := db.InstanceGet("gorm:started_transaction")
	switch {
	case !w.outcome.done:
		w.memory.Created = w.creates()
		w.memory.Restore()
		w.forgetEmptied()
	case !w.outcome.stays && (own || w.outcome.opened):
		w.undo()
	}
}

func (w *Write) creates() bool { return w.op == OpCreate || w.op == OpUpsert }

// keepWritten records what the statement did to its structs, so that a rollback of the transaction undoes it.
func (w *Write) keepWritten(stmt *gorm.Statement) {
	w.outcome.done = true
	w.memory.GotKeys()
	if !journal.InTransaction(stmt) {
		return
	}
	w.memory.Leave()
	w.memory.Created = w.creates()
	w.memory.Guessed = !w.memory.Created && w.version.is() && !w.compared()
	j := journal.Of(stmt)
	switch {
	case j == nil:
		w.lose() // gormlock does not see how the transaction ends
	case !w.outcome.undone:
		j.Keep(w)
		w.outcome.kept = true
		w.memory.Copied = w.memory.Count > 0 && whereabouts.IsCopied(stmt, w.memory.Row(0))
	}
}
