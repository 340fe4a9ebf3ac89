// Package sqlstate reads the SQLSTATE of a server's answer from an error. It asks for the method SQLState, which the
// errors of pgx and lib/pq have, so no driver is imported.
package sqlstate

import (
	"errors"
	"slices"
	"strings"
)

// The codes that gormlock acts on, by the names that PostgreSQL gives them.
const (
	ProtocolViolation          = "08P01"
	FeatureNotSupported        = "0A000"
	InvalidTextRepresentation  = "22P02"
	UniqueViolation            = "23505"
	ReadOnlySQLTransaction     = "25006"
	NoActiveSQLTransaction     = "25P01"
	InFailedSQLTransaction     = "25P02"
	InvalidSQLStatementName    = "26000"
	SerializationFailure       = "40001"
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
)

// The classes that gormlock acts on: the first two characters of a code.
const (
	ClassConnection   = "08"
	ClassResources    = "53" // no connection, memory or space is left
	ClassAccessOrName = "42" // a syntax error, a name that is not there, a right that is missing
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
	return ""
}

// Is reports whether the SQLSTATE of err is one of codes.
func Is(err error, codes ...string) bool {
	state := Of(err)
	return state != "" && slices.Contains(codes, state)
}

// InClass reports whether the SQLSTATE of err belongs to a class.
func InClass(err error, class string) bool { return strings.HasPrefix(Of(err), class) }
