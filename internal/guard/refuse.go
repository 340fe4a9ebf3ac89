package guard

import (
	"errors"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// refuse makes err the statement's error. If something was already stored, the transaction must not be committed.
func (w *Write) refuse(db *gorm.DB, err error) {
	if err == nil {
		if !w.inserted {
			w.memory.Restore()
		}
		w.outcome.done = true
		return
	}
	if errors.Is(err, fault.ErrStale) || errors.Is(err, fault.ErrFenced) || errors.Is(err, fault.ErrVersionMissing) {
		if db.RowsAffected > 0 || w.hasStored(db.Statement) {
			Doom(db, err)
		}
	}
	doomWithParent(db, err)
	install.Of(db).TellRefused(db.Statement.Context, err)
	fault.Add(db, err)
}

// hasStored reports whether something may be stored besides what the statement itself wrote: by its hooks, or as
// associations. If gormlock follows the transaction, it knows.
func (w *Write) hasStored(stmt *gorm.Statement) bool {
	j := journal.Of(stmt)
	if j == nil {
		return w.storedBefore(stmt) || w.hooksBefore(stmt)
	}
	own := 0
	if w.built.any {
		own = 1
	}
	return j.IsStrict() || j.Written()-w.writtenBefore > own
}

// doomWithParent prevents the commit of what a statement stored before one of its associations was refused with err.
func doomWithParent(db *gorm.DB, err error) {
	if statement.IsAssociation(db.Statement) {
		Doom(db, err)
	}
}

// Doom prevents the commit of the transaction of db. If gormlock does not see the commit, the server must refuse it:
// one statement that fails is enough, and a rollback to an earlier savepoint makes the transaction usable again.
func Doom(db *gorm.DB, err error) {
	if j := journal.Of(db.Statement); j != nil {
		j.Doom(err)
		return
	}
	tx := statement.Transaction(db.Statement)
	if _, own := db.InstanceGet("gorm:started_transaction"); own || tx == nil || db.DryRun || !statement.IsPostgres(db) {
		return // GORM rolls its own back
	}
	_, _ = tx.ExecContext(db.Statement.Context, "SELECT 'gormlock: an earlier write was refused'::bigint")
}
