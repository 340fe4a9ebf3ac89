package sqlstate_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/internal/sqlstate"
)

// pqError is shaped as the error of lib/pq.
type pqError struct{ Severity, Code, Where, Routine string }

func (e *pqError) Error() string    { return e.Code }
func (e *pqError) SQLState() string { return e.Code }

// code is an error of a driver that hands on nothing else.
type code string

func (c code) Error() string    { return string(c) }
func (c code) SQLState() string { return string(c) }

// The code of an error says whether the server refused a row, or the context.
func TestIsOfARow(t *testing.T) {
	t.Parallel()
	const trigger = "SQL statement \"UPDATE a SET n = 1\"\nPL/pgSQL function refuse() line 1 at SQL statement"
	const row = `while updating tuple (0,1) in relation "mails"`
	for _, c := range []struct {
		code, where, severity, routine string
		want                           bool
	}{
		{code: "23514", want: true},
		{code: "22003", want: true},
		{code: "P0001", where: trigger, want: true},
		{code: "55P03"},
		{code: "55P03", where: trigger, want: true},
		{code: "55P03", where: row, want: true},
		{code: "55006"},
		{code: "57014"},
		{code: "57014", where: trigger, want: true},
		{code: "40001"},
		{code: "40001", where: trigger, want: true}, // if it does not pass the next time either
		{code: "53100"},
		{code: "53100", where: trigger, want: true},
		{code: "08001", where: trigger, want: true},
		{code: "57P01", where: trigger, severity: "FATAL"},
		{code: "25006"},
		{code: "42P01"},
		{code: "42P01", where: trigger, want: true},
		{code: "42501", routine: "ExecWithCheckOptions", want: true},
		{code: "42501", routine: "aclcheck_error"},
		{code: "42501", routine: "aclcheck_error", where: trigger, want: true},
	} {
		for _, err := range []error{
			&pgconn.PgError{Code: c.code, Where: c.where, SeverityUnlocalized: c.severity, Routine: c.routine},
			&pqError{Code: c.code, Where: c.where, Severity: c.severity, Routine: c.routine},
		} {
			if got := sqlstate.IsOfARow(fmt.Errorf("wrapped: %w", err)); got != c.want {
				t.Errorf("%+v: %t", c, got)
			}
		}
	}
	if sqlstate.IsOfARow(nil) || sqlstate.IsOfARow(errors.New("no answer")) {
		t.Error("what the server did not say is of a row")
	}
	for state, want := range map[code]bool{"23514": true, "P0001": true, "40001": false, "08006": false} {
		if got := sqlstate.IsOfARow(state); got != want {
			t.Errorf("%s alone: %t", state, got)
		}
	}
}
