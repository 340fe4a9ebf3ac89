package xact

import (
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/statement"
)

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
	if db.Error == nil && !db.DryRun && !db.SkipDefaultTransaction && statement.IsPostgres(db) && statement.Transaction(stmt) == nil {
		stmt.Context = journal.Carry(stmt.Context, request.Within(install.Of(db).DefaultTimeout).Allowing(install.Of(db).Servers))
	}
	return true
}
