package gormlocktest

import (
	"regexp"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/absent"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/lockkey"
)

// Refused is the server's answer to a Try for a lock that somebody else holds, for WillReturnResult. Use it for one key in
// an open transaction, and for any number of keys that are sent with a BEGIN at READ COMMITTED. For the others use
// [ErrRefused].
var Refused = sqlmock.NewResult(0, 0)

var (
	// ErrRefused is the server's answer to a Try for several keys in a transaction that is open, and for any number that are
	// sent with a BEGIN at REPEATABLE READ or above, if somebody else holds the first of them. For WillReturnError.
	ErrRefused error = serverError{"22P02", `invalid input syntax for type integer: "gormlock not acquired: key 1"`}

	// ErrLockNotAvailable is the server's error when a lock_timeout ends a wait, and where a row that is asked for with Try
	// is locked. For WillReturnError.
	ErrLockNotAvailable error = serverError{"55P03", "canceling statement due to lock timeout"}
)

type serverError struct{ state, message string }

func (e serverError) Error() string    { return "ERROR: " + e.message + " (SQLSTATE " + e.state + ")" }
func (e serverError) SQLState() string { return e.state }

// ExpectBegin expects the BEGIN of a transaction that starts with these locks: of [gormlock.Transaction] with Locking,
// or of a statement with WithXactLock that is not in a transaction yet. Unless told otherwise it succeeds. The
// transaction ends with [ExpectCommit] or [ExpectRollback], even if it was refused.
//
// If the plugin has a DefaultTimeout, give it here as Timeout. If Transaction has an isolation level, is read-only, or has
// locks with options of their own, use [ExpectBeginTx].
func ExpectBegin(t testing.TB, mock sqlmock.Sqlmock, keys []lockkey.Key, opts ...advisory.Option) *sqlmock.ExpectedExec {
	t.Helper()
	request, err := lockrequest.New(keys, opts...)
	if err != nil {
		t.Fatal(err)
	}
	before, after := request.Opening(false).Around()
	return expectIn(t, mock, before+"BEGIN; "+after)
}

// ExpectBeginTx expects the BEGIN of [gormlock.Transaction] with these options, as [ExpectBegin] does. At least one must be a
// Locking. Write a DefaultTimeout of the plugin out: Locking(key, Timeout(d)).
func ExpectBeginTx(t testing.TB, mock sqlmock.Sqlmock, opts ...gormlock.TxOption) *sqlmock.ExpectedExec {
	t.Helper()
	return expectIn(t, mock, beginText(t, opts))
}

// ExpectCommit expects the COMMIT of a transaction that began with locks.
func ExpectCommit(mock sqlmock.Sqlmock) *sqlmock.ExpectedExec {
	return expect(mock, "SELECT 1; COMMIT")
}

// ExpectRollback expects the ROLLBACK of a transaction that began with locks.
func ExpectRollback(mock sqlmock.Sqlmock) *sqlmock.ExpectedExec { return expect(mock, "ROLLBACK") }

// ExpectAcquire expects these locks in a transaction that is open: of AcquireXactLock, of a statement with WithXactLock,
// and of Locking where no lock travels with the BEGIN: inside of another transaction, with PlainTransactions, and on
// db.Connection. Unless told otherwise they are granted. After an error of the server, such as [ErrLockNotAvailable],
// gormlock rolls back to its savepoint: [ExpectUndo].
func ExpectAcquire(t testing.TB, mock sqlmock.Sqlmock, keys []lockkey.Key, opts ...advisory.Option) *sqlmock.ExpectedExec {
	t.Helper()
	return expectIn(t, mock, heard(t, func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, keys, opts...) })[0])
}

// ExpectUndo expects the rollback to the savepoint before locks, of keys or of rows, that were not granted.
func ExpectUndo(mock sqlmock.Sqlmock) *sqlmock.ExpectedExec {
	return expect(mock, "ROLLBACK TO SAVEPOINT gormlock; RELEASE SAVEPOINT gormlock")
}

var granted = sqlmock.NewResult(0, 1)

// expectIn is expect for callers that have the test.
func expectIn(t testing.TB, mock sqlmock.Sqlmock, text string) *sqlmock.ExpectedExec {
	t.Helper()
	mustBeThere(t, mock)
	return expect(mock, text)
}

// mustBeThere ends the test if the mock or pool is nil.
func mustBeThere(t testing.TB, given any) {
	t.Helper()
	if absent.Is(given) {
		t.Fatal("gormlocktest: the mock or pool is nil")
	}
}

// expect expects a text without parameters. If it has a savepoint of [gormlock.Once], the savepoint's number does not matter.
func expect(mock sqlmock.Sqlmock, text string) *sqlmock.ExpectedExec {
	return expectPattern(mock, regexp.QuoteMeta(text))
}

func expectPattern(mock sqlmock.Sqlmock, pattern string) *sqlmock.ExpectedExec {
	return mock.ExpectExec("^" + onceSavepoint.ReplaceAllLiteralString(pattern, onceSavepoint.String()) + "$").WillReturnResult(granted)
}

var onceSavepoint = regexp.MustCompile(`gormlock_once_\d+`)
