package xact

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/mark"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/lockkey"
)

// Lock is a clause: the locks that a statement takes before it runs. It writes no SQL into the statement.
type Lock struct {
	request *lockrequest.Request
	err     error
}

// New makes the clause of a request, or of what was wrong with it.
func New(request *lockrequest.Request, err error) Lock { return Lock{request, err} }

// AddTo is a scope that gives a statement the locks.
func AddTo(l Lock) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB { return mark.Give(db, l) }
}

// ClauseName is the name under which a statement carries its locks.
const ClauseName = "gormlock:xact"

// ModifyStatement implements [gorm.StatementModifier].
func (l Lock) ModifyStatement(stmt *gorm.Statement) {
	switch {
	case l.err != nil:
		mark.Fail(stmt, l.err)
	case l.request == nil:
		mark.Fail(stmt, fmt.Errorf("%w: no keys to lock", lockkey.ErrInvalid))
	case install.Of(stmt.DB) == nil:
		mark.Fail(stmt, fault.ErrNotInstalled)
	case statement.InAssociationOperation():
		l.takeNow(stmt)
	default:
		request := l.request
		if earlier := On(stmt); earlier != nil {
			request = earlier.And(request)
		}
		stmt.Clauses[ClauseName] = clause.Clause{Name: ClauseName, Expression: Lock{request: request}}
		stmt.Context = context.WithValue(stmt.Context, askedKey{}, &askedFor{request: request})
		mark.Put(stmt, lockedHere{l.request})
	}
}

// takeNow takes the lock of a statement for which nobody else would.
func (l Lock) takeNow(stmt *gorm.Statement) {
	if stmt.DryRun {
		return
	}
	if err := Acquire(stmt.DB, l.request); err != nil {
		mark.Fail(stmt, err)
	}
}

// askedKey finds in a context the locks that the statement it was made for asks for. Sessions that GORM makes of it have the
// context, and not the clause.
type askedKey struct{}

// askedFor is what it finds: the locks of one call, and the error of a map that the call could not store.
type askedFor struct {
	request *lockrequest.Request
	refused atomic.Pointer[error]
}

// NoteRefused notes that a map of Association(…).Append was refused, and reports whether the maps behind it will be too: GORM goes on with
// them, and returns only the last one's error. It knows the call only by its locks.
func NoteRefused(stmt *gorm.Statement, err error) bool {
	asked, is := stmt.Context.Value(askedKey{}).(*askedFor)
	if is {
		asked.refused.CompareAndSwap(nil, &err)
	}
	return is
}

// Recall gives the lock back to a create that GORM makes for a map in Association(…).Append, before the statement
// itself.
func Recall(db *gorm.DB) {
	stmt := db.Statement
	asked, is := stmt.Context.Value(askedKey{}).(*askedFor)
	if !is || On(stmt) != nil || db.Error != nil || reflect.ValueOf(stmt.Dest).Kind() != reflect.Map || !statement.InAppend() {
		return
	}
	if refused := asked.refused.Load(); refused != nil {
		fault.Add(db, fmt.Errorf("gormlock: %s: not executed, another map with the same clause was refused, give a new one to a new call: %w", statement.TableName(stmt), *refused))
		return
	}
	stmt.Clauses[ClauseName] = clause.Clause{Name: ClauseName, Expression: Lock{request: asked.request}}
}

// Build implements [clause.Expression]. There is nothing to build.
func (Lock) Build(clause.Builder) {}

// Name is empty: the clause itself writes nothing.
func (Lock) Name() string { return "" }

// MergeClause merges nothing: ModifyStatement does it.
func (Lock) MergeClause(*clause.Clause) {}

// On is the request that the statement carries, nil when it carries none.
func On(stmt *gorm.Statement) *lockrequest.Request {
	if lock, ok := stmt.Clauses[ClauseName].Expression.(Lock); ok {
		return lock.request
	}
	return nil
}
