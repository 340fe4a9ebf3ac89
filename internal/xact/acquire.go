package xact

import (
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/sqltext"
	"github.com/gormlock/gormlock/internal/sqltx"
	"github.com/gormlock/gormlock/internal/statement"
)

// Acquire takes the locks in the transaction that db runs in.
func Acquire(db *gorm.DB, request *lockrequest.Request) error {
	locks := install.Pretended(db)
	if locks == nil && !statement.IsPostgres(db) {
		return fault.NoLocks(db.Name(), request)
	}
	tx := statement.Transaction(db.Statement)
	if tx == nil {
		return fmt.Errorf("%w: lock %s", fault.ErrNoTransaction, request)
	}
	plugin := install.Of(db)
	request = request.Within(plugin.DefaultTimeout).Allowing(plugin.Servers)
	began := plugin.Began()
	var err error
	if locks != nil {
		err = pretendTo(db, tx, locks, request)
	} else {
		plugin.KeyNames.Note(journal.DatabaseUnder(db.ConnPool), request)
		err = request.Acquire(db.Statement.Context, tx)
	}
	journal.TellLocks(db.Statement.Context, plugin, request, began, journal.Of(db.Statement), err)
	journal.NoteRefusal(db, err)
	return err
}

// AcquireAsked takes locks, if there are any, and those that are asked on db itself: it is for calls that make no statement of db. One that
// does nothing takes them all together then.
func AcquireAsked(db *gorm.DB, requests ...*lockrequest.Request) error {
	asked := statement.HasScopes(db.Statement) || len(db.Statement.Clauses) > 0
	switch {
	case db.DryRun:
		return nil
	case !asked && len(requests) > 0:
		return Acquire(db, requests[0].And(requests[1:]...))
	case !asked:
		return nil
	}
	with := statement.Beside(db)
	for _, request := range requests {
		if statement.Transaction(db.Statement) == nil && install.Pretended(db) == nil {
			return fmt.Errorf("%w: lock %s", fault.ErrNoTransaction, request)
		}
		with = with.Clauses(New(request, nil))
	}
	return with.Exec("SELECT 1").Error
}

// errBack is the error of locks that a text would free as it goes back to a savepoint.
var errBack = errors.New("gormlock: a text with ROLLBACK TO frees the locks that its statement takes: take them in a statement behind it")

// errGoesOn is the error of locks that a text would free as it ends their transaction.
var errGoesOn = errors.New("gormlock: a text that ends its transaction and goes on frees the locks that its statement takes: " +
	"end the transaction without a lock, and take the locks in a statement behind it")

// TakeRaw takes the locks of a text for Exec. If it goes back to a savepoint, that would free them, and an aborted transaction could not
// take them: HearRaw takes them behind it.
func TakeRaw(db *gorm.DB) {
	if On(db.Statement) == nil || !goesBack(db.Statement) || !statement.IsSavepoint(db.Statement) {
		Take(db)
	}
}

// HearRaw is called after the text.
func HearRaw(db *gorm.DB) {
	journal.Hear(db)
	if On(db.Statement) != nil && db.Error == nil && goesBack(db.Statement) && !statement.InNesting() {
		take(db)
	}
	journal.Follow(db)
}

func goesBack(stmt *gorm.Statement) bool {
	return stmt.SQL.Len() > 0 && sqltext.Read(stmt.SQL.String()).GoesBack()
}

// Take takes the statement's locks, unless they came with the BEGIN of its transaction.
func Take(db *gorm.DB) {
	stmt := db.Statement
	switch {
	case On(stmt) == nil || statement.IsSavepoint(stmt) && statement.InNesting():
	case db.Error == nil && goesBack(stmt):
		fault.Add(db, errBack)
	case db.Error == nil && stmt.SQL.Len() > 0 && sqltext.Read(stmt.SQL.String()).GoesOn():
		fault.Add(db, errGoesOn)
	default:
		take(db)
	}
}

func take(db *gorm.DB) {
	stmt, request := db.Statement, On(db.Statement)
	carried := journal.RequestIn(stmt.Context)
	stmt.Context = journal.Spend(stmt.Context)
	if db.Error != nil {
		return
	}
	if db.DryRun {
		if statement.InSubQuery() {
			fault.Add(db, fault.ErrSubQuery)
		}
		return
	}
	if j := journal.Of(stmt); carried != nil && j != nil && j.BegunWith == carried {
		return
	}
	if err := Acquire(db, request); err != nil {
		fault.Add(db, err)
	}
}

// RefuseRow gives a failed Row a row that says why: GORM would give nil, which panics in Scan.
func RefuseRow(db *gorm.DB) {
	if db.Error == nil {
		return
	}
	if rows, ok := db.Get("rows"); ok && rows == false {
		if fault.IsAdded(db.Statement) {
			db.Statement.Dest = sqltx.FailedRow(db.Error)
		}
	}
}

// AfterRow does the same after GORM has built the statement, which may have failed. A Row whose context has ended says why it has ended.
func AfterRow(db *gorm.DB) {
	if _, opened := db.Statement.Dest.(*sql.Row); !opened {
		RefuseRow(db)
	}
	explainRow(db)
	journal.Follow(db)
}

// explainRow gives such a Row another one: the error of a row is not the statement's.
func explainRow(db *gorm.DB) {
	row, is := db.Statement.Dest.(*sql.Row)
	if !is || row == nil || db.Statement.Context.Err() == nil {
		return
	}
	if err := row.Err(); err != nil {
		db.Statement.Dest = sqltx.FailedRow(fault.Caused(db, err))
	}
}
