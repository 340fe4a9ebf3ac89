package guard

import (
	"errors"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

// refuse makes err the statement's error. If something was already stored, the transaction must not be committed: see doomStored.
func (w *Write) refuse(db *gorm.DB, err error) {
	if err == nil {
		if !w.inserted {
			w.memory.Restore()
		}
		w.outcome.done = true
		return
	}
	install.Of(db).TellRefused(db.Statement.Context, err)
	fault.Add(db, err)
}

// tallySetting is where a statement without a Write keeps what had happened in the transaction when it began. A Write has it.
const tallySetting = "gormlock:tally"

// tally is kept with its statement: GORM hands settings to the statements of associations.
type tally struct {
	journal.Tally
	of *gorm.Statement
}

func beginTally(stmt *gorm.Statement) {
	if !mayStoreMore(stmt) || stmt.DryRun {
		return
	}
	t := &tally{of: stmt}
	if t.Begin(stmt, true) {
		stmt.Settings.Store(tallySetting, t)
	}
}

// mayStoreMore reports whether a statement may store more than its own rows: by hooks, or as associations.
func mayStoreMore(stmt *gorm.Statement) bool {
	s := stmt.Schema
	return s != nil && (statement.HasRelations(s) || !stmt.SkipHooks && (s.BeforeSave || s.BeforeCreate || s.BeforeUpdate || s.BeforeDelete ||
		s.AfterSave || s.AfterCreate || s.AfterUpdate || s.AfterDelete))
}

// doomStored prevents, at the end of a statement that has failed, the commit of what it has stored, if something was refused in it: the
// statement itself, or a write of its hooks or of its associations, whatever a hook has made of the error.
func doomStored(db *gorm.DB) {
	stmt, w := db.Statement, writeOf(db.Statement)
	var before *journal.Tally
	if kept, is := stmt.Settings.Load(tallySetting); w != nil {
		before = &w.before
	} else if t, _ := kept.(*tally); is && t.of == stmt {
		before = &t.Tally
		stmt.Settings.Delete(tallySetting)
	}
	stored, refused := before.End(db)
	if db.Error == nil || db.DryRun || HasOwnTransaction(db) {
		return // GORM rolls its own back
	}
	isRefusal := errors.Is(db.Error, fault.ErrStale) || errors.Is(db.Error, fault.ErrFenced) || errors.Is(db.Error, fault.ErrVersionMissing)
	j := journal.Of(stmt)
	strict := w != nil && j != nil && j.IsStrict()
	if stored && (refused || isRefusal) || strict && isRefusal {
		journal.Doom(db, db.Error)
	}
}
