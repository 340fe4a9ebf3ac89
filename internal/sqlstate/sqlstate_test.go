package sqlstate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

func TestOf(t *testing.T) {
	t.Parallel()
	stale := &pgconn.PgError{Code: sqlstate.SerializationFailure}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nil":              {nil, ""},
		"not the server's": {errors.New("40001"), ""},
		"itself":           {stale, "40001"},
		"wrapped":          {fmt.Errorf("commit: %w", stale), "40001"},
		"joined":           {errors.Join(errors.New("rollback"), stale), "40001"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := sqlstate.Of(c.err); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestIs(t *testing.T) {
	t.Parallel()
	timeout := fmt.Errorf("acquire: %w", &pgconn.PgError{Code: "55P03"})
	if !sqlstate.Is(timeout, sqlstate.DeadlockDetected, sqlstate.LockNotAvailable) {
		t.Error("55P03 is not among the codes that name it")
	}
	if sqlstate.Is(timeout, sqlstate.DeadlockDetected) || sqlstate.Is(timeout) {
		t.Error("55P03 is taken for a code that was not asked for")
	}
	if sqlstate.Is(errors.New("no answer"), "") {
		t.Error("an error without a state has one")
	}
}

func TestInClass(t *testing.T) {
	t.Parallel()
	broken := &pgconn.PgError{Code: sqlstate.ProtocolViolation}
	if !sqlstate.InClass(broken, sqlstate.ClassConnection) || sqlstate.InClass(broken, sqlstate.ClassAccessOrName) {
		t.Error("08P01 is of class 08 and of no other")
	}
	if sqlstate.InClass(errors.New("08"), sqlstate.ClassConnection) {
		t.Error("an error without a state has a class")
	}
}

// Each name is the one that the server itself has for the code.
func TestCodes_areTheServers(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), pgtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	for condition, code := range map[string]string{
		"protocol_violation":                  sqlstate.ProtocolViolation,
		"feature_not_supported":               sqlstate.FeatureNotSupported,
		"invalid_text_representation":         sqlstate.InvalidTextRepresentation,
		"read_only_sql_transaction":           sqlstate.ReadOnlySQLTransaction,
		"no_active_sql_transaction":           sqlstate.NoActiveSQLTransaction,
		"in_failed_sql_transaction":           sqlstate.InFailedSQLTransaction,
		"invalid_sql_statement_name":          sqlstate.InvalidSQLStatementName,
		"serialization_failure":               sqlstate.SerializationFailure,
		"deadlock_detected":                   sqlstate.DeadlockDetected,
		"insufficient_privilege":              sqlstate.InsufficientPrivilege,
		"undefined_column":                    sqlstate.UndefinedColumn,
		"undefined_object":                    sqlstate.UndefinedObject,
		"undefined_table":                     sqlstate.UndefinedTable,
		"duplicate_prepared_statement":        sqlstate.DuplicatePreparedStatement,
		"invalid_column_reference":            sqlstate.InvalidColumnReference,
		"out_of_memory":                       sqlstate.OutOfMemory,
		"lock_not_available":                  sqlstate.LockNotAvailable,
		"query_canceled":                      sqlstate.QueryCanceled,
		"admin_shutdown":                      sqlstate.AdminShutdown,
		"crash_shutdown":                      sqlstate.CrashShutdown,
		"cannot_connect_now":                  sqlstate.CannotConnectNow,
		"idle_session_timeout":                sqlstate.IdleSessionTimeout,
		"idle_in_transaction_session_timeout": sqlstate.IdleInTransactionTimeout,
	} {
		_, err := conn.Exec(t.Context(), "DO $$ BEGIN RAISE "+condition+"; END $$")
		if got := sqlstate.Of(err); got != code {
			t.Errorf("%s: the server answers %q, the constant is %q", condition, got, code)
		}
	}
}

// MySQLError is shaped as that of go-sql-driver/mysql, whose SQLState is a field.
type MySQLError struct {
	Number   uint16
	SQLState [5]byte
	Message  string
}

func (e *MySQLError) Error() string { return e.Message }

// The errors of MariaDB and MySQL are known by their numbers, without their driver, however they are wrapped.
func TestOf_mysql(t *testing.T) {
	t.Parallel()
	for number, want := range map[uint16]string{1213: sqlstate.DeadlockDetected, 1205: sqlstate.LockNotAvailable, 1020: sqlstate.SerializationFailure, 1062: sqlstate.UniqueViolation, 1064: ""} {
		err := error(&MySQLError{Number: number, SQLState: [5]byte{'4', '0', '0', '0', '1'}})
		for _, err := range []error{err, fmt.Errorf("wrapped: %w", err), errors.Join(errors.New("other"), err)} {
			if got := sqlstate.Of(err); got != want {
				t.Errorf("%d: got %q, want %q", number, got, want)
			}
			if got := sqlstate.EndsTransaction(err); got != (number == 1213 || number == 1020) {
				t.Errorf("%d ends the transaction: %t", number, got)
			}
			if got := sqlstate.MayEndTransaction(err); got != (number == 1205) {
				t.Errorf("%d may end the transaction: %t", number, got)
			}
		}
	}
}
