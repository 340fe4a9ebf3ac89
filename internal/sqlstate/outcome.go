package sqlstate

import (
	"reflect"
	"slices"
)

// MayBeDone reports whether a statement, or a commit, that ended with err may have been executed: nobody has said that it was refused, nor that it was
// not sent. What is not known must be looked up, or told.
//
// Do not ask a commit's error whether it was sent: after a lost answer to a COMMIT pgx returns "conn closed", and says that it was not sent. See TakesBack.
func MayBeDone(err error) bool { return err != nil && !TakesBack(err) && !IsUnsent(err) }

// TakesBack reports whether the server has failed a statement, and with it its commit, so that nothing of it is stored.
//
// An error that ends the session is no answer to the statement: the session may have ended before or after the commit. Nor is the error of a pooler
// that has lost its server. It has no code of its own. With PgBouncer 1.18 and Pgpool-II 4.3, a statement or a COMMIT that the server had executed, and
// whose answer was lost, ended with
//
//	FATAL: server conn crashed? (08P01)
//	FATAL: unable to read data from DB node 0 (XX000)
//
// and so did one that never came to the server. While there is no server they say FATAL with 08P01, XX000 or nothing. Unlike PostgreSQL, neither names
// the function that raised the error. Errors of class 58 may come from another pooler. 40003 is the code that the standard has for an outcome that is not known.
func TakesBack(err error) bool {
	return Of(err) != "" && !isFatal(err) && !Is(err, StatementCompletionUnknown) &&
		!InClass(err, ClassConnection) && !InClass(err, "57P") && !InClass(err, ClassSystem) && !InClass(err, ClassInternal)
}

// IsUnsent reports whether the driver says that nothing of a statement was sent: there was no connection, or it was found closed before. Of several
// errors that are joined, each must say so.
//
// driver.ErrBadConn does not say so: see sqltx.ErrUnheard.
func IsUnsent(err error) bool {
	switch err := err.(type) { //nolint:errorlint // it is looked for all the way down
	case nil:
		return false
	case interface{ SafeToRetry() bool }:
		return err.SafeToRetry()
	case interface{ Unwrap() []error }:
		joined := err.Unwrap()
		return len(joined) > 0 && !slices.ContainsFunc(joined, func(one error) bool { return !IsUnsent(one) })
	case interface{ Unwrap() error }:
		of := reflect.TypeOf(err)
		return of.Kind() == reflect.Pointer && of.Elem().Name() == "ConnectError" || IsUnsent(err.Unwrap()) // that of pgconn
	}
	return false
}

// EndsSession reports whether the session has ended, or none begins at the moment: the server stops or starts, the session took longer than the
// server's settings allow, or a pooler has lost its server, or finds none: see TakesBack. The next session may do better.
//
// PostgreSQL also reports 08P01 for a statement that was prepared with other parameters. This lasts, and the session goes on.
func EndsSession(err error) bool {
	switch {
	case Is(err, AdminShutdown, CrashShutdown, CannotConnectNow, IdleSessionTimeout, IdleInTransactionTimeout, TransactionTimeout):
		return true
	case Is(err, ProtocolViolation):
		return isFatal(err)
	case InClass(err, ClassConnection):
		return true
	}
	return isFatal(err) && (InClass(err, ClassSystem) || InClass(err, ClassInternal))
}

// isFatal reports whether the session ended with this error.
func isFatal(err error) bool {
	severity := fieldsOf(err).severity
	return severity == "FATAL" || severity == "PANIC"
}
