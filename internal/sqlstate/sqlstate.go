// Package sqlstate reads the SQLSTATE of a server's answer from an error. It asks for the method SQLState, which the
// errors of pgx and lib/pq have, and knows the errors of go-sql-driver/mysql by their name, so no driver is imported.
package sqlstate

import (
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
)

// The codes that gormlock acts on, by the names that PostgreSQL gives them.
const (
	ProtocolViolation          = "08P01"
	FeatureNotSupported        = "0A000"
	NumericValueOutOfRange     = "22003"
	DivisionByZero             = "22012"
	CharacterNotInRepertoire   = "22021"
	InvalidTextRepresentation  = "22P02"
	UntranslatableCharacter    = "22P05"
	UniqueViolation            = "23505"
	ReadOnlySQLTransaction     = "25006"
	NoActiveSQLTransaction     = "25P01"
	InFailedSQLTransaction     = "25P02"
	IdleInTransactionTimeout   = "25P03"
	TransactionTimeout         = "25P04"
	InvalidSQLStatementName    = "26000"
	SerializationFailure       = "40001"
	StatementCompletionUnknown = "40003"
	DeadlockDetected           = "40P01"
	InsufficientPrivilege      = "42501"
	UndefinedColumn            = "42703"
	UndefinedObject            = "42704"
	UndefinedTable             = "42P01"
	DuplicatePreparedStatement = "42P05"
	InvalidColumnReference     = "42P10"
	OutOfMemory                = "53200" // of advisory locks: the server's lock table is full
	LockNotAvailable           = "55P03" // of NOWAIT and of lock_timeout alike
	QueryCanceled              = "57014"
	AdminShutdown              = "57P01"
	CrashShutdown              = "57P02"
	CannotConnectNow           = "57P03"
	IdleSessionTimeout         = "57P05"
)

// The classes that gormlock acts on: the first two characters of a code.
const (
	ClassConnection   = "08"
	ClassResources    = "53" // no connection, memory or space is left
	ClassAccessOrName = "42" // a syntax error, a name that is not there, a right that is missing
	ClassSystem       = "58" // an error of the operating system
	ClassInternal     = "XX"
)

// Of returns the SQLSTATE of err, or "" when the server did not answer with an error.
func Of(err error) string {
	if err == nil {
		return ""
	}
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	if number, is := mysqlNumber(err); is {
		return byNumber[number]
	}
	return ""
}

// Routine returns the function of PostgreSQL's source that reported err: a state says less, and a message may be translated. The errors of pgx
// and lib/pq have it in a field.
func Routine(err error) string {
	var coded interface{ SQLState() string }
	if !errors.As(err, &coded) {
		return ""
	}
	value := reflect.Indirect(reflect.ValueOf(coded))
	if value.Kind() != reflect.Struct {
		return ""
	}
	if field := value.FieldByName("Routine"); field.IsValid() && field.Kind() == reflect.String {
		return field.String()
	}
	return ""
}

// byNumber are the errors of MariaDB and MySQL that mean what a state of PostgreSQL means. Their own states are too few: that
// of a deadlock is the one that PostgreSQL has for a failed serialization.
var byNumber = map[uint64]string{
	1020: SerializationFailure, // the row has changed since the snapshot: innodb_snapshot_isolation
	1054: UndefinedColumn,
	1062: UniqueViolation,
	1146: UndefinedTable,
	1205: LockNotAvailable, // a wait that ran out, and NOWAIT of MariaDB
	1213: DeadlockDetected,
	1264: NumericValueOutOfRange,
	1317: QueryCanceled,
	1690: NumericValueOutOfRange,
	1792: ReadOnlySQLTransaction,
	3572: LockNotAvailable, // NOWAIT of MySQL
}

// mysqlNumber is the number of an error of go-sql-driver/mysql, whose SQLState is a field and no method.
func mysqlNumber(err error) (number uint64, is bool) {
	switch wrapped := err.(type) { //nolint:errorlint // it is looked for all the way down
	case interface{ Unwrap() error }:
		return mysqlNumber(wrapped.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range wrapped.Unwrap() {
			if number, is = mysqlNumber(one); is {
				return number, true
			}
		}
		return 0, false
	}
	value := reflect.Indirect(reflect.ValueOf(err))
	if !value.IsValid() || value.Kind() != reflect.Struct || value.Type().Name() != "MySQLError" {
		return 0, false
	}
	field := value.FieldByName("Number")
	if !field.IsValid() || !field.CanUint() {
		return 0, false
	}
	return field.Uint(), true
}

// EndsTransaction reports whether the server has rolled the whole transaction back with this error, and goes on as if none
// had been begun. MariaDB and MySQL do so after a deadlock and where the table of locks is full, and MariaDB where a row has
// changed since the snapshot.
func EndsTransaction(err error) bool {
	number, is := mysqlNumber(err)
	return is && ending[number]
}

var ending = map[uint64]bool{1020: true, 1206: true, 1213: true, 1614: true}

// MayEndTransaction reports whether it may have done so, or a routine that failed may have ended it: with most errors of
// MariaDB and MySQL. Some are known to be about one statement, such as a value that does not fit.
func MayEndTransaction(err error) bool {
	number, is := mysqlNumber(err)
	return is && !ending[number] && !aboutStatement[number]
}

var aboutStatement = map[uint64]bool{
	1048: true, 1054: true, 1062: true, 1064: true, 1146: true, 1264: true, 1265: true, 1292: true, 1364: true, 1366: true, 1406: true,
	1451: true, 1452: true, 1690: true,
}

// IsOutOfRange reports whether a number of MariaDB or MySQL was out of range.
func IsOutOfRange(err error) bool {
	number, is := mysqlNumber(err)
	return is && number == 1690
}

// IsLockWaitTimeout reports whether a wait for a lock of MariaDB or MySQL ran out: innodb_rollback_on_timeout says what
// becomes of the transaction.
func IsLockWaitTimeout(err error) bool {
	number, is := mysqlNumber(err)
	return is && number == 1205
}

// Is reports whether the SQLSTATE of err is one of codes.
func Is(err error, codes ...string) bool {
	state := Of(err)
	return state != "" && slices.Contains(codes, state)
}

// InClass reports whether the SQLSTATE of err belongs to a class.
func InClass(err error, class string) bool { return strings.HasPrefix(Of(err), class) }

// IsOfTheNetwork reports whether an error without a SQLSTATE is one of the connection, and not the answer of a server.
func IsOfTheNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
