package gormlocktest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"regexp"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/lockkey"
)

// Refused is the server's answer to a Try for a lock that somebody else holds, for WillReturnResult. It is that of one
// key in a transaction that is open, and of any number that travel with a BEGIN.
var Refused = sqlmock.NewResult(0, 0)

// ErrLockNotAvailable is the server's error when a lock_timeout ends a wait, for WillReturnError.
var ErrLockNotAvailable error = serverError{"55P03", "canceling statement due to lock timeout"}

type serverError struct{ state, message string }

func (e serverError) Error() string    { return "ERROR: " + e.message + " (SQLSTATE " + e.state + ")" }
func (e serverError) SQLState() string { return e.state }

// ExpectBegin expects the BEGIN of a transaction that starts with these locks: of [gormlock.Transaction] with Locking, or
// of a statement with WithXactLock that is not in a transaction yet. Unless told otherwise it succeeds. The transaction
// ends with [ExpectCommit] or [ExpectRollback], also when it was refused.
//
// The isolation level is the default one; for another one, or with a DefaultTimeout of the plugin, give the options that
// are in force.
//
// [gormlock.Transaction]: https://pkg.go.dev/github.com/gormlock/gormlock#Transaction
func ExpectBegin(t testing.TB, mock sqlmock.Sqlmock, keys []lockkey.Key, opts ...advisory.Option) *sqlmock.ExpectedExec {
	t.Helper()
	request, err := advisory.NewRequest(keys, opts...)
	if err != nil {
		t.Fatal(err)
	}
	opening := request.Opening(false)
	return expect(mock, opening.Before+"BEGIN; "+opening.After).WillReturnResult(granted)
}

// ExpectCommit expects the COMMIT of a transaction that began with locks.
func ExpectCommit(mock sqlmock.Sqlmock) *sqlmock.ExpectedExec {
	return expect(mock, "SELECT 1; COMMIT").WillReturnResult(granted)
}

// ExpectRollback expects the ROLLBACK of a transaction that began with locks.
func ExpectRollback(mock sqlmock.Sqlmock) *sqlmock.ExpectedExec {
	return expect(mock, "ROLLBACK").WillReturnResult(granted)
}

// ExpectAcquire expects these locks in a transaction that is open: of AcquireXactLock, or of a statement with
// WithXactLock. Unless told otherwise they are granted. After an error of the server, such as [ErrLockNotAvailable], gormlock
// takes the transaction back to where it was: [ExpectUndo].
func ExpectAcquire(t testing.TB, mock sqlmock.Sqlmock, keys []lockkey.Key, opts ...advisory.Option) *sqlmock.ExpectedExec {
	t.Helper()
	var sent listener
	// What the request makes of the answer is its own affair: the text is all that is wanted.
	_ = advisory.Acquire(t.Context(), &sent, keys, opts...)
	if len(sent.texts) == 0 {
		_, err := advisory.NewRequest(keys, opts...)
		t.Fatal(err)
	}
	return expect(mock, sent.texts[0]).WillReturnResult(granted)
}

// ExpectUndo expects the way back to the savepoint before locks that were not granted.
func ExpectUndo(mock sqlmock.Sqlmock) *sqlmock.ExpectedExec {
	return expect(mock, "ROLLBACK TO SAVEPOINT gormlock; RELEASE SAVEPOINT gormlock").WillReturnResult(granted)
}

// ExpectClaim expects a Claim of rows of the table, and gives it these, in their order.
func ExpectClaim(mock sqlmock.Sqlmock, table string, columns []string, rows ...[]driver.Value) *sqlmock.ExpectedQuery {
	claimed := sqlmock.NewRows(append(columns[:len(columns):len(columns)], "gormlock_place"))
	for i, row := range rows {
		claimed.AddRow(append(row[:len(row):len(row)], int64(i+1))...)
	}
	quoted := regexp.QuoteMeta(`"` + table + `"`)
	return mock.ExpectQuery(`(^| )UPDATE ` + quoted + ` SET .* RETURNING ` + quoted + `\.\*.*"gormlock_place"$`).WillReturnRows(claimed)
}

var granted = sqlmock.NewResult(0, 1)

func expect(mock sqlmock.Sqlmock, text string) *sqlmock.ExpectedExec {
	return mock.ExpectExec("^" + regexp.QuoteMeta(text) + "$")
}

// listener is a transaction that hears what it is asked.
type listener struct{ texts []string }

func (l *listener) ExecContext(_ context.Context, query string, _ ...any) (sql.Result, error) {
	l.texts = append(l.texts, query)
	return granted, nil
}

func (*listener) Commit() error   { return nil }
func (*listener) Rollback() error { return nil }
