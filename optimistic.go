package gormlock

import (
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// versionWrite is one statement that writes a model with a version, or one that IfUnchanged guards. It lives in the
// statement's clauses from before the transaction begins until after it has ended.
type versionWrite struct {
	model  *versionedModel
	intent *versionIntent
	fence  *fenceWrite // nil: the model has no fence

	memory structMemory  // the structs, if any
	rows   []versionRow  // the same, one by one; none: a bulk statement, or a plain create
	single [1]versionRow // the one of them where there is one; of a bulk statement, the versions

	later     version // what a temporal version becomes
	upsert    *versionUpsert
	returning *versionReturning // what the server is asked for; nil: nothing

	op    writeOp
	batch bool // the structs are in a slice
	dry   bool // nothing is sent, so memory stays

	// What the statement does to versions.
	armed      bool // the builders of versionSQL take part
	checked    bool // a row is written only at the version expected
	save       bool // Save, which must write its row or fail
	forced     bool // the version moves also where nothing else is SET
	exact      bool // no expected version is 0 or NULL
	addKey     bool // GORM leaves the key out of the conditions
	partialKey bool // a part of the key is zero
	inserted   bool // Save found no row and made one
	filtered   bool // a row at the right version may stay unwritten: the caller has conditions of his own

	// What building it showed.
	built, set, bumps, nothing, timesOnly bool

	opened bool // the transaction is ours: openForVersions
	done   bool // the rows were written as asked
	undone bool

	lostRows bool // of a claim: it may have written rows that did not come back
	over     bool // the statement has ended
}

// writeOp is what a write is to its caller.
type writeOp uint8

const (
	opCreate writeOp = iota
	opUpdate
	opDelete
	opSave
	opTouch
	opUpsert
	opClaim
	opVerify
)

func (op writeOp) String() string {
	return [...]string{"create", "update", "delete", "save", "touch", "upsert", "claim", "verify"}[op]
}

// versionRow is one struct of a versioned write.
type versionRow struct {
	row      reflect.Value // the struct; addressable where memory can follow
	key      []any         // nil where the struct has none
	name     string        // the key as a string, to compare
	expected version
	next     version
	twin     bool // another row of the batch has the same key
}

const versionClause = "gormlock:version_write"

// Name, Build and MergeClause make a versionWrite fit into a statement's clauses, where it is found again.
func (w *versionWrite) Name() string               { return versionClause }
func (w *versionWrite) Build(clause.Builder)       {}
func (w *versionWrite) MergeClause(*clause.Clause) {}

func versionWriteOf(stmt *gorm.Statement) *versionWrite {
	c, ok := stmt.Clauses[versionClause]
	if !ok {
		return nil
	}
	w, _ := c.Expression.(*versionWrite)
	if w == nil || w.over {
		return nil
	}
	return w
}

// rememberBeforeUpdate keeps the structs as they are before hooks and GORM change them: before the transaction.
func rememberBeforeUpdate(db *gorm.DB) {
	if w := beginVersionWrite(db, opUpdate); w != nil {
		w.remember(db, db.Statement.Model)
	}
}

// rememberBeforeCreate does so for a create, which also may be handed maps.
func rememberBeforeCreate(db *gorm.DB) {
	if w := beginVersionWrite(db, opCreate); w != nil {
		w.remember(db, db.Statement.Dest)
		w.notice(db.Statement)
	}
}

// rememberBeforeDelete does so for a delete, whose key may come from Model where the destination has none.
func rememberBeforeDelete(db *gorm.DB) {
	w := beginVersionWrite(db, opDelete)
	if w == nil {
		return
	}
	w.remember(db, db.Statement.Dest)
	if w.batch || w.memory.count == 0 || samePointer(db.Statement.Dest, db.Statement.Model) {
		return
	}
	if key, _ := keyOf(db.Statement, w.model.schema, w.memory.row(0)); key == nil {
		w.memory = structMemory{}
		w.remember(db, db.Statement.Model)
	}
}

// beginVersionWrite puts a versionWrite into the statement, if the model or a clause asks for one.
func beginVersionWrite(db *gorm.DB, op writeOp) *versionWrite {
	stmt := db.Statement
	if db.Error != nil {
		return nil
	}
	if stmt.Schema == nil {
		refuseWithoutModel(db)
		return nil
	}
	m := versionedModelOf(db)
	if m == nil {
		return nil
	}
	if m.err != nil {
		fail(db, m.err)
		return nil
	}
	intent := versionIntentOf(stmt)
	if m.column == nil && m.fence == nil && intent == nil {
		return nil
	}
	if stmt.SQL.Len() > 0 {
		fail(db, errBuilt)
		return nil
	}
	refuseWithoutVersions(db, intent)
	if db.Error != nil {
		return nil
	}
	intent, err := intent.on(m)
	if err != nil {
		fail(db, err)
		return nil
	}
	guard, err := m.fenceOf(stmt, intent)
	if err != nil {
		doomWithParent(db, err)
		fail(db, err)
		return nil
	}
	if m.column != nil && m.column.kind == systemVersion && !isPostgres(db) {
		fail(db, ErrNotPostgres)
		return nil
	}
	w := &versionWrite{model: m, intent: intent, fence: guard, op: op, dry: db.DryRun}
	stmt.Clauses[versionClause] = clause.Clause{Expression: w}
	return w
}

// errBuilt is the error of a statement that comes with the text of another one, which GORM would send again in its place.
var errBuilt = errors.New("gormlock: the statement has been built before it begins: what a hook makes of its tx by Session " +
	"repeats the hook's own statement, unless the session is a NewDB")

// remember takes the structs that the statement stands for: none where value holds none.
func (w *versionWrite) remember(db *gorm.DB, value any) {
	found, hole := w.memory.find(w.model, value)
	w.batch = found && w.memory.batch()
	if !w.dry {
		w.memory.keep()
	}
	if hole {
		fail(db, fmt.Errorf("gormlock: %s: an element of the slice is nil: %w", w.model.schema.Table, gorm.ErrInvalidValue))
	}
}

// expand makes a row of each struct.
func (w *versionWrite) expand() {
	if !w.batch {
		w.rows = w.single[:w.memory.count]
	} else {
		w.rows = make([]versionRow, w.memory.count)
	}
	for i := range w.rows {
		w.rows[i].row = w.memory.row(i)
	}
}

func samePointer(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.Kind() == reflect.Pointer && y.Kind() == reflect.Pointer && x.Type() == y.Type() && x.Pointer() == y.Pointer()
}

// keyOf is the primary key of row, and nil where the struct has none. complete is false where a part of it is zero.
func keyOf(stmt *gorm.Statement, s *schema.Schema, row reflect.Value) (key []any, complete bool) {
	key, complete = make([]any, len(s.PrimaryFields)), true
	some := false
	for i, field := range s.PrimaryFields {
		value, zero := field.ValueOf(stmt.Context, row)
		key[i] = value
		some = some || !zero
		complete = complete && !zero
	}
	if !some {
		return nil, false
	}
	return key, complete
}

// closeVersions puts memory right when the statement and its own transaction have ended, and forgets it.
func closeVersions(db *gorm.DB) {
	w := versionWriteOf(db.Statement)
	if w == nil {
		return
	}
	w.over = true
	w.returning.restore(db.Statement)
	if w.opened {
		w.end(db)
	}
	if db.Error == nil || db.DryRun {
		return
	}
	_, own := db.InstanceGet("gorm:started_transaction")
	switch {
	case !w.done:
		w.memory.restore()
	case own, w.opened:
		w.undo()
	}
}

// openForVersions begins a transaction where GORM begins none and a write that goes wrong halfway could not be taken
// back: a batch, an upsert, or what GORM stores or deletes before the statement itself.
func openForVersions(db *gorm.DB) {
	w := versionWriteOf(db.Statement)
	if w == nil || db.Error != nil || db.DryRun || transactionOf(db.Statement) != nil {
		return
	}
	if !w.divisible(db.Statement) {
		return
	}
	tx := db.Begin()
	if tx.Error != nil {
		fail(db, tx.Error)
		return
	}
	db.Statement.ConnPool = tx.Statement.ConnPool
	w.opened = true
}

// divisible tells whether the statement can do a part of what it is asked and find the rest stale.
func (w *versionWrite) divisible(stmt *gorm.Statement) bool {
	if w.op != opCreate {
		return w.batch || w.wroteBefore(stmt) || w.mayLeaveOut(stmt)
	}
	if w.fence.guards() && (hasUpsert(stmt) || w.wroteBefore(stmt)) {
		return true
	}
	if !hasUpsert(stmt) && !w.upsert.child {
		return false
	}
	for i := range w.memory.count {
		if _, complete := keyOf(stmt, w.model.schema, w.memory.row(i)); complete {
			return true
		}
	}
	return false
}

func (w *versionWrite) end(db *gorm.DB) {
	if db.Error != nil {
		db.Rollback()
	} else {
		db.Commit()
	}
	db.Statement.ConnPool = db.ConnPool
}

func hasUpsert(stmt *gorm.Statement) bool {
	c, ok := stmt.Clauses["ON CONFLICT"]
	if !ok {
		return false
	}
	conflict, ok := c.Expression.(clause.OnConflict)
	return ok && !conflict.DoNothing
}
