package xact

import (
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
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
		stmt.Context = journal.ForMaps(stmt.Context, request)
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

// Recall gives the lock back to a create that GORM makes for a map in Association(…).Append, before the statement
// itself.
func Recall(db *gorm.DB) {
	stmt := db.Statement
	maps := journal.MapsOf(stmt.Context)
	if maps == nil || On(stmt) != nil || db.Error != nil || reflect.ValueOf(stmt.Dest).Kind() != reflect.Map || !statement.InAppend() {
		return
	}
	if refused := maps.Refused(); refused != nil {
		fault.Add(db, fmt.Errorf("gormlock: %s: not executed, another map with the same clause was refused, give a new one to a new call: %w", statement.TableName(stmt), refused))
		return
	}
	stmt.Clauses[ClauseName] = clause.Clause{Name: ClauseName, Expression: Lock{request: maps.Request}}
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
