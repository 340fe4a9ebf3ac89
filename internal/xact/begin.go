package xact

import (
	"errors"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/statement"
)

// errBehindMaps is the error of locks that only the last statement of a call takes.
var errBehindMaps = errors.New("gormlock: a lock that Scopes gives comes too late here: Association(…).Append has stored rows of maps, and GORM runs scopes after that; " +
	"give the lock with Clauses, and roll this transaction back")

// refuseBehindMaps fails the update of an owner whose locks are not held yet, if GORM has created the rows of maps for it before: it does that
// without the scopes of the call.
func refuseBehindMaps(db *gorm.DB, request *lockrequest.Request) {
	if db.Error != nil || db.DryRun || !journal.IsHalfway(db.Statement) || !statement.InAssociation() {
		return
	}
	if held, err := holdsNow(db, request); err != nil {
		fault.Add(db, err)
	} else if !held {
		fault.Add(db, errBehindMaps)
	}
}

// holdsNow reports whether the transaction has all of the locks.
func holdsNow(db *gorm.DB, request *lockrequest.Request) (bool, error) {
	if locks := install.Pretended(db); locks != nil {
		return request.HeldIn(locks, journal.Of(db.Statement)), nil
	}
	return request.Held(db.Statement.Context, statement.Transaction(db.Statement))
}

// AtBegin hands the statement's locks to the transaction that GORM is about to begin for it, so that they travel
// with its BEGIN. It reports whether the statement has locks.
func AtBegin(db *gorm.DB) bool {
	stmt := db.Statement
	request := On(stmt)
	if request == nil {
		return false
	}
	if err := statement.Unending(db); err != nil && db.Error == nil {
		fault.Add(db, err)
		return true
	}
	refuseBehindMaps(db, request)
	if db.Error == nil && !db.DryRun && !db.SkipDefaultTransaction && statement.IsPostgres(db) && statement.Transaction(stmt) == nil {
		stmt.Context = journal.Carry(stmt.Context, request.Within(install.Of(db).DefaultTimeout).Allowing(install.Of(db).Servers))
	}
	return true
}
