package guard

import (
	"errors"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
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
	w.doomStored(db, err)
	journal.DoomWithParent(db, err)
	install.Of(db).TellRefused(db.Statement.Context, err)
	fault.Add(db, err)
}

// doomStored prevents the commit of what a refused write has stored. w is nil for a model that nothing checks.
func (w *Write) doomStored(db *gorm.DB, err error) {
	isRefusal := errors.Is(err, fault.ErrStale) || errors.Is(err, fault.ErrFenced) || errors.Is(err, fault.ErrVersionMissing)
	if !isRefusal || db.DryRun {
		return
	}
	if db.RowsAffected > 0 || w != nil && w.hasStored(db.Statement) || w == nil && hooksHaveStored(db.Statement) {
		journal.Doom(db, err)
	}
}

// writtenSetting is where a statement without a Write keeps how many statements had written before its hooks.
const writtenSetting = "gormlock:written_before_hooks"

// noteWritten keeps that number, -1 if nobody counts. A Write has it.
func noteWritten(stmt *gorm.Statement) {
	s := stmt.Schema
	if hooked := s != nil && !stmt.SkipHooks && (s.BeforeSave || s.BeforeCreate || s.BeforeUpdate || s.BeforeDelete); !hooked {
		return
	}
	written := -1
	if j := journal.Of(stmt); j != nil {
		written = j.Written()
	}
	stmt.Settings.Store(writtenSetting, written)
}

// hooksHaveStored reports whether the hooks of such a statement may have stored something.
func hooksHaveStored(stmt *gorm.Statement) bool {
	before, noted := stmt.Settings.Load(writtenSetting)
	j := journal.Of(stmt)
	return noted && (j == nil || j.Written() > before.(int)) //nolint:forcetypeassert // noteWritten stored it
}

// doomByHooks does so at the end of a statement, one of whose hooks may have made a write that was refused.
func doomByHooks(db *gorm.DB) {
	if db.Error == nil {
		return
	}
	if _, own := db.InstanceGet("gorm:started_transaction"); own {
		return // GORM has rolled it back
	}
	if w := writeOf(db.Statement); w == nil || !w.outcome.opened {
		w.doomStored(db, db.Error)
	}
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
