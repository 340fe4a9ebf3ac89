package advisory_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/lockkey"
)

// answer is an error of a server, as drivers give it.
type answer struct{ state, message string }

func (a answer) Error() string    { return a.message + " (SQLSTATE " + a.state + ")" }
func (a answer) SQLState() string { return a.state }

var (
	errDriver = errors.New("the driver says no")
	one       = []lockkey.Key{lockkey.Pair(1, 2)}
	two       = []lockkey.Key{lockkey.Pair(1, 2), lockkey.Int64(7)}
)

// undone is a server that refuses the statement, after which the caller goes back to its savepoint.
func undone(err error) func(sqlmock.Sqlmock) {
	return func(mock sqlmock.Sqlmock) {
		mock.ExpectExec("SAVEPOINT gormlock; ").WillReturnError(err)
		mock.ExpectExec("ROLLBACK TO SAVEPOINT gormlock").WillReturnResult(sqlmock.NewResult(0, 0))
	}
}

// TestDriver: what a driver or a server can answer, and what becomes of the call. Nothing else is sent.
func TestDriver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys   []lockkey.Key
		opts   []advisory.Option
		expect func(mock sqlmock.Sqlmock)
		want   []error
		text   string
	}{
		"try that counts no rows": {one, []advisory.Option{advisory.Try()}, func(mock sqlmock.Sqlmock) {
			mock.ExpectExec("SAVEPOINT gormlock; .*pg_try_advisory_xact_lock").WillReturnResult(sqlmock.NewErrorResult(errDriver))
		}, []error{errDriver}, "the driver did not say whether it is held"},
		"try: no row": {one, []advisory.Option{advisory.Try()}, func(mock sqlmock.Sqlmock) {
			mock.ExpectExec("pg_try_advisory_xact_lock").WillReturnResult(sqlmock.NewResult(0, 0))
		}, []error{advisory.ErrNotAcquired}, ""},
		"try: one row": {one, []advisory.Option{advisory.Try()}, func(mock sqlmock.Sqlmock) {
			mock.ExpectExec("pg_try_advisory_xact_lock").WillReturnResult(sqlmock.NewResult(0, 1))
		}, nil, ""},
		"try: two rows": {one, []advisory.Option{advisory.Try()}, func(mock sqlmock.Sqlmock) {
			mock.ExpectExec("pg_try_advisory_xact_lock").WillReturnResult(sqlmock.NewResult(0, 2))
		}, []error{advisory.ErrSnapshotTaken}, ""},
		"try: three rows": {one, []advisory.Option{advisory.Try()}, func(mock sqlmock.Sqlmock) {
			mock.ExpectExec("pg_try_advisory_xact_lock").WillReturnResult(sqlmock.NewResult(0, 3))
		}, []error{advisory.ErrStandby}, ""},
		"try: a count that means nothing": {one, []advisory.Option{advisory.Try()}, func(mock sqlmock.Sqlmock) {
			mock.ExpectExec("pg_try_advisory_xact_lock").WillReturnResult(sqlmock.NewResult(0, -1))
		}, []error{advisory.ErrNotAcquired}, ""},
		"an error without SQLSTATE: the server was not heard, nothing is sent after it": {two, nil, func(mock sqlmock.Sqlmock) {
			mock.ExpectExec("SAVEPOINT gormlock; ").WillReturnError(errDriver)
		}, []error{errDriver}, ""},
		"a connection that is gone": {two, []advisory.Option{advisory.Timeout(time.Second)}, func(mock sqlmock.Sqlmock) {
			mock.ExpectExec("SAVEPOINT gormlock; ").WillReturnError(driver.ErrBadConn)
		}, []error{driver.ErrBadConn}, ""},
		"an aborted transaction has no savepoint to go back to": {two, nil, func(mock sqlmock.Sqlmock) {
			mock.ExpectExec("SAVEPOINT gormlock; ").WillReturnError(answer{"25P02", "aborted"})
		}, []error{answer{"25P02", "aborted"}}, ""},
		"no transaction": {two, nil, func(mock sqlmock.Sqlmock) {
			mock.ExpectExec("SAVEPOINT gormlock; ").WillReturnError(answer{"25P01", "no block"})
		}, []error{answer{"25P01", "no block"}}, "no transaction is open"},
		"a timeout": {two, []advisory.Option{advisory.Timeout(time.Second)}, func(mock sqlmock.Sqlmock) {
			mock.ExpectExec("SAVEPOINT gormlock; ").WillReturnError(answer{"55P03", "canceling"})
			mock.ExpectExec("ROLLBACK TO SAVEPOINT gormlock; RELEASE SAVEPOINT gormlock").WillReturnResult(sqlmock.NewResult(0, 0))
		}, []error{advisory.ErrLockTimeout, answer{"55P03", "canceling"}}, "after 1s"},
		"a timeout, and the way back fails": {two, []advisory.Option{advisory.Timeout(time.Second)}, func(mock sqlmock.Sqlmock) {
			mock.ExpectExec("SAVEPOINT gormlock; ").WillReturnError(answer{"55P03", "canceling"})
			mock.ExpectExec("ROLLBACK TO SAVEPOINT gormlock").WillReturnError(errDriver)
		}, []error{advisory.ErrLockTimeout}, "the transaction is lost: the driver says no"},
		"a deadlock is the server's": {two, nil, undone(answer{"40P01", "deadlock detected"}),
			[]error{answer{"40P01", "deadlock detected"}}, "deadlock detected"},
		"a refused key, in a server's own language": {two, []advisory.Option{advisory.Try()}, undone(answer{"22P02", `ungültige Eingabesyntax für Typ integer: »gormlock not acquired: key 2«`}),
			[]error{advisory.ErrNotAcquired}, one[0].String()},
		"a snapshot, in a server's own language": {two, nil, undone(answer{"22P02", `ungültige Eingabesyntax für Typ integer: "gormlock refused: serializable"`}),
			[]error{advisory.ErrSnapshotTaken}, "isolation level serializable"},
		"a standby": {two, nil, undone(answer{"22P02", `"gormlock refused: read committed"`}),
			[]error{advisory.ErrStandby}, ""},
		"another 22P02 is not ours": {two, nil, undone(answer{"22P02", "something else"}),
			[]error{answer{"22P02", "something else"}}, ""},
		"a server that does not know the functions is asked who it is": {two, nil, func(mock sqlmock.Sqlmock) {
			undone(answer{"42883", "unknown function: pg_is_in_recovery()"})(mock)
			mock.ExpectExec("SAVEPOINT gormlock; SELECT CAST").WillReturnError(answer{"22P02", `no integer: "gormlock server: CrateDB 5.10.4 (built 4cdd5c5)"`})
			mock.ExpectExec("ROLLBACK TO SAVEPOINT gormlock").WillReturnResult(sqlmock.NewResult(0, 0))
		}, []error{advisory.ErrServer, answer{"42883", "unknown function: pg_is_in_recovery()"}}, `it is CrateDB (CrateDB 5.10.4 (built 4cdd5c5)); see what gormlock doctor finds there, and use AllowServer("CrateDB")`},
		"a server that does not say who it is": {two, []advisory.Option{advisory.Try()}, func(mock sqlmock.Sqlmock) {
			mock.ExpectExec("SAVEPOINT gormlock; ").WillReturnError(answer{"0A000", "SAVEPOINT is not supported"})
			mock.ExpectExec("ROLLBACK TO SAVEPOINT gormlock").WillReturnError(errDriver)
		}, []error{advisory.ErrServer, errDriver}, "it does not say its name"},
		"a right that is missing is PostgreSQL's to say": {two, nil, undone(answer{"42501", "permission denied"}),
			[]error{answer{"42501", "permission denied"}}, "permission denied"},
		"a full lock table": {two, nil, undone(answer{"53200", "out of shared memory"}),
			[]error{answer{"53200", "out of shared memory"}}, "max_locks_per_transaction"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, mock, err := sqlmock.New()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			mock.ExpectBegin()
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			c.expect(mock)
			err = advisory.Acquire(context.Background(), tx, c.keys, c.opts...)
			if len(c.want) == 0 && err != nil {
				t.Errorf("err = %v", err)
			}
			for _, want := range c.want {
				if !errors.Is(err, want) {
					t.Errorf("err = %v, want %v", err, want)
				}
			}
			if err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("err = %v, want a text with %q", err, c.text)
			}
			if err := mock.ExpectationsWereMet(); err != nil {
				t.Error(err)
			}
			mock.ExpectRollback()
			if err := tx.Rollback(); err != nil {
				t.Error(err)
			}
		})
	}
}
