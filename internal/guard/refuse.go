package guard

import (
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

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

// tallyClause is where a statement without a Write keeps what had happened in the transaction when it began. A Write has it.
const tallyClause = "gormlock:tally"

// tally is kept with its statement: sessions in its hooks may carry on with its clauses.
type tally struct {
	journal.Tally
	of *gorm.Statement
}

// Build makes a tally fit into a statement's clauses. It writes nothing.
func (*tally) Build(clause.Builder) {}

func beginTally(stmt *gorm.Statement) {
	if mayStoreMore(stmt) {
		keepTally(stmt)
	}
}

func keepTally(stmt *gorm.Statement) {
	if begun, known := journal.Count(stmt, true); known {
		stmt.Clauses[tallyClause] = clause.Clause{Expression: &tally{begun, stmt}}
	}
}

// takeTally is what a statement has kept, nil if it has kept nothing.
func takeTally(stmt *gorm.Statement) *journal.Tally {
	t, _ := stmt.Clauses[tallyClause].Expression.(*tally)
	if t == nil || t.of != stmt {
		return nil
	}
	delete(stmt.Clauses, tallyClause)
	return &t.Tally
}

// EndQuery notes that a query ends, whose AfterFind hooks run now.
func EndQuery(db *gorm.DB) {
	endUse(db.Statement)
	if s := db.Statement.Schema; s != nil && s.AfterFind && !db.Statement.SkipHooks && db.Error == nil {
		keepTally(db.Statement)
	}
}

// EndHooks ends a query after these hooks, of which the same holds as of those of a write.
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

func doomIf(db *gorm.DB, before *journal.Tally) {
	stored, refused := before.End(db)
	if stored && (refused || isStale(db.Error)) && db.Error != nil && !db.DryRun && !HasOwnTransaction(db) { // GORM rolls its own back
		journal.Doom(db, db.Error)
	}
}
