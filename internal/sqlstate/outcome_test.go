package sqlstate_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/internal/sqlstate"
)

// Only an error of the server itself, after which the session goes on, says that a statement was refused.
func TestTakesBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code, severity  string
		takesBack, ends bool
	}{
		{"23505", "ERROR", true, false},
		{"40001", "ERROR", true, false},
		{"57014", "ERROR", true, false},
		{"25P02", "ERROR", true, false},
		{"53100", "ERROR", true, false},
		{"40003", "ERROR", false, false},
		{"57P01", "FATAL", false, true},
		{"57P02", "", false, true},
		{"57P03", "FATAL", false, true},
		{"25P03", "FATAL", false, true},
		{"25P04", "FATAL", false, true},
		{"08006", "ERROR", false, true},
		{"08P01", "FATAL", false, true}, // PgBouncer
		{"08P01", "ERROR", false, false},
		{"XX000", "FATAL", false, true}, // Pgpool
		{"XX000", "ERROR", false, false},
		{"XX000", "PANIC", false, true},
		{"58000", "FATAL", false, true},
		{"58030", "ERROR", false, false},
		{"40001", "FATAL", false, false},
		{"28P01", "FATAL", false, false},
	} {
		for _, err := range []error{&pgconn.PgError{Code: c.code, Severity: c.severity}, &pqError{Code: c.code, Severity: c.severity}} {
			err := fmt.Errorf("wrapped: %w", err)
			if sqlstate.TakesBack(err) != c.takesBack || sqlstate.MayBeDone(err) == c.takesBack || sqlstate.EndsSession(err) != c.ends {
				t.Errorf("%s %s: takes back %t, may be done %t, ends the session %t",
					c.severity, c.code, sqlstate.TakesBack(err), sqlstate.MayBeDone(err), sqlstate.EndsSession(err))
			}
		}
	}
}

// What the driver did not send is not done. Where only one of several errors says so, it may be.
func TestMayBeDone(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, refused := pgconn.Connect(t.Context(), "postgres://127.0.0.1:1/")
	_, late := pgconn.Connect(ended, "postgres://127.0.0.1:1/")
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{refused, false},
		{late, false},
		{fmt.Errorf("claim: %w", refused), false},
		{errors.Join(refused, late), false},
		{errors.Join(io.ErrUnexpectedEOF, refused), true},
		{driver.ErrBadConn, true},
		{io.ErrUnexpectedEOF, true},
		{context.DeadlineExceeded, true},
	} {
		if got := sqlstate.MayBeDone(c.err); got != c.want {
			t.Errorf("%v: %t", c.err, got)
		}
	}
}
