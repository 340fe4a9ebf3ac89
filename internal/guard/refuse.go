package guard

import (
	"errors"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/statement"
)

// refuse makes err the statement's error. If anything was already stored, it must not be committed: see doomStored.
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

// tallySetting is the setting in which a statement without a Write keeps what had happened in the transaction when it began. A Write has that
// itself.
const tallySetting = "gormlock:tally"

// tally is kept with its statement, because GORM passes settings on to the statements of associations.
type tally struct {
	journal.Tally
	of *gorm.Statement
}

func beginTally(stmt *gorm.Statement) {
	if mayStoreMore(stmt) {
		keepTally(stmt)
	}
}

func keepTally(stmt *gorm.Statement) {
	if begun, known := journal.Count(stmt, true); known {
		stmt.Settings.Store(tallySetting, &tally{begun, stmt})
	}
}

// takeTally returns and removes what a statement has kept, or nil.
func takeTally(stmt *gorm.Statement) *journal.Tally {
	if statement.Transaction(stmt) == nil || !mayStoreMore(stmt) && !mayFindMore(stmt) {
		return nil // a lookup would allocate
	}
	kept, _ := stmt.Settings.Load(tallySetting)
	t, _ := kept.(*tally)
	if t == nil || t.of != stmt {
		return nil
	}
	stmt.Settings.Delete(tallySetting)
	return &t.Tally
}

// EndQuery notes that a query has ended, before its AfterFind hooks run.
func EndQuery(db *gorm.DB) {
	endUse(db.Statement)
	if mayFindMore(db.Statement) && db.Error == nil {
		keepTally(db.Statement)
	}
}

// EndHooks ends a query after these hooks. They are treated like the hooks of a write.
func EndHooks(db *gorm.DB) {
	mark.RefuseAfterHooks(db)
	if before := takeTally(db.Statement); before != nil {
		doomIf(db, before)
	}
}

// mayStoreMore reports whether a statement may store more than its own rows: by hooks, or as associations.
func mayStoreMore(stmt *gorm.Statement) bool {
	s := stmt.Schema
	return s != nil && (statement.HasRelations(s) || !stmt.SkipHooks && (s.BeforeSave || s.BeforeCreate || s.BeforeUpdate || s.BeforeDelete ||
		s.AfterSave || s.AfterCreate || s.AfterUpdate || s.AfterDelete))
}

// doomStored runs at the end of a statement that has failed. It prevents the commit of what the statement has stored, if anything in it was
// refused: the statement itself, or a write of its hooks or associations, whatever a hook has made of the error.
func doomStored(db *gorm.DB) {
	w := writeOf(db.Statement)
	if w == nil {
		doomIf(db, takeTally(db.Statement))
		return
	}
	doomIf(db, &w.before)
	if j := journal.Of(db.Statement); j != nil && j.IsStrict() && isStale(db.Error) && !db.DryRun && !HasOwnTransaction(db) {
		journal.Doom(db, db.Error)
	}
}

// isStale reports whether an error says that a row was not as its writer knew it. A hook may return its own error.
func isStale(err error) bool {
	return errors.Is(err, fault.ErrStale) || errors.Is(err, fault.ErrFenced) || errors.Is(err, fault.ErrVersionMissing)
}

// mayFindMore reports whether hooks run after a query, because they may store something.
func mayFindMore(stmt *gorm.Statement) bool {
	return stmt.Schema != nil && stmt.Schema.AfterFind && !stmt.SkipHooks
}

func doomIf(db *gorm.DB, before *journal.Tally) {
	stored, refused := before.End(db)
	if stored && (refused || isStale(db.Error)) && db.Error != nil && !db.DryRun && !HasOwnTransaction(db) { // GORM rolls its own transaction back
		journal.Doom(db, db.Error)
	}
}
