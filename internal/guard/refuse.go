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
	if mayStoreMore(stmt) {
		keepTally(stmt)
	}
}

func keepTally(stmt *gorm.Statement) {
	if begun, known := journal.Count(stmt, true); known {
		stmt.Settings.Store(tallySetting, &tally{begun, stmt})
	}
}

// takeTally is what a statement has kept, nil if it has kept nothing.
func takeTally(stmt *gorm.Statement) *journal.Tally {
	if statement.Transaction(stmt) == nil || !mayStoreMore(stmt) && !mayFindMore(stmt) {
		return nil // to look would allocate
	}
	kept, _ := stmt.Settings.Load(tallySetting)
	t, _ := kept.(*tally)
	if t == nil || t.of != stmt {
		return nil
	}
	stmt.Settings.Delete(tallySetting)
	return &t.Tally
}

// EndQuery notes that a query ends, whose AfterFind hooks run now.
func EndQuery(db *gorm.DB) {
	endUse(db.Statement)
	if mayFindMore(db.Statement) && db.Error == nil {
		keepTally(db.Statement)
	}
}

// EndHooks ends a query after these hooks, of which the same holds as of those of a write.
func EndHooks(db *gorm.DB) {
	mark.RefuseAfterHooks(db)
	if before := takeTally(db.Statement); before != nil {
		doomIf(db, before)
	}
	statement.FailAround(db)
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

// isStale reports whether an error says that a row was not as its writer knew it. A hook may return one of its own.
func isStale(err error) bool {
	return errors.Is(err, fault.ErrStale) || errors.Is(err, fault.ErrFenced) || errors.Is(err, fault.ErrVersionMissing)
}

// mayFindMore reports whether hooks run after a query, which may store something.
func mayFindMore(stmt *gorm.Statement) bool {
	return stmt.Schema != nil && stmt.Schema.AfterFind && !stmt.SkipHooks
}

func doomIf(db *gorm.DB, before *journal.Tally) {
	stored, refused := before.End(db)
	if stored && (refused || isStale(db.Error)) && db.Error != nil && !db.DryRun && !HasOwnTransaction(db) { // GORM rolls its own back
		journal.Doom(db, db.Error)
	}
}
