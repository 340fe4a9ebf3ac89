package guard

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// Open begins a transaction if GORM begins none and a write that fails halfway could not be undone: a batch, an upsert, or a write to which GORM or
// a hook adds other writes. It also begins one if the write could be sent twice: the second one would find its row stale.
func Open(db *gorm.DB) {
	refuseLateOfChildren(db)
	if db.Error != nil || db.DryRun || statement.Transaction(db.Statement) != nil {
		return
	}
	w := writeOf(db.Statement)
	if w == nil || !w.divisible(db.Statement) && !journal.MaySendTwice(db) || journal.BegunByHand(db.Statement) {
		return
	}
	tx := db.Begin()
	if tx.Error != nil {
		fault.Add(db, tx.Error)
		return
	}
	db.Statement.ConnPool = tx.Statement.ConnPool
	journal.Adopt(db)
	w.outcome.opened = true
}

// HasOwnTransaction reports whether the transaction of a statement ends with it.
func HasOwnTransaction(db *gorm.DB) bool {
	_, own := db.InstanceGet("gorm:started_transaction")
	w := writeOf(db.Statement)
	return own || w != nil && w.outcome.opened
}

// divisible reports whether the statement can write some of its rows and find others stale.
func (w *Write) divisible(stmt *gorm.Statement) bool {
	if w.storesMore(stmt) {
		return true
	}
	if w.op != OpCreate {
		return w.batch || w.mayLeaveOut(stmt)
	}
	if !statement.HasUpsert(stmt) && !w.upsert.child {
		return false
	}
	if w.fence.guards() {
		return true
	}
	for i := range w.memory.Count {
		if key, _ := statement.KeyOf(stmt, w.model.Schema, w.memory.Row(i)); key != nil {
			return true
		}
	}
	return false
}

// storesMore reports whether anything is stored in addition to the statement itself: by hooks, or as associations.
func (w *Write) storesMore(stmt *gorm.Statement) bool {
	s := w.model.Schema
	if w.storedBefore(stmt) {
		return true
	}
	if !stmt.SkipHooks && (s.BeforeSave || s.BeforeCreate || s.BeforeUpdate || s.BeforeDelete || s.AfterSave || s.AfterCreate || s.AfterUpdate || s.AfterDelete) {
		return true
	}
	for _, relation := range statement.OwnRelations(s) {
		for i := range w.memory.Count {
			if place := statement.Place(relation.Field, w.memory.Row(i)); w.op != OpDelete && place.IsValid() && !place.IsZero() {
				return true
			}
		}
	}
	return false
}

// storedBefore reports whether anything was stored before the statement itself: its structs' belongs-to, or the deletion of children in a delete.
func (w *Write) storedBefore(stmt *gorm.Statement) bool {
	if w.op == OpDelete {
		return len(stmt.Selects) > 0
	}
	for _, relation := range w.model.Schema.Relationships.BelongsTo {
		for i := range w.memory.Count {
			if _, zero := relation.Field.ValueOf(stmt.Context, w.memory.Row(i)); !zero {
				return true
			}
		}
	}
	return false
}
