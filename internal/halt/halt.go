// Package halt cancels the statement of another session, or ends the session: only what somebody has seen, and not what the
// session, or another one with its process id, does by now.
package halt

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"
)

// Seen is a session as somebody saw it.
type Seen struct {
	PID       int
	Started   time.Time // its backend_start; zero if it is hidden from the role
	Statement time.Time // the state_change of the statement that it ran; zero if none was seen
	Here      bool      // leave it alone unless it is a client of this database, and not the session that asks
}

// Outcome is what came of it.
type Outcome string

// The outcomes. After each but Asked nothing was done.
const (
	Asked   Outcome = "asked"   // the session was signalled
	Gone    Outcome = "gone"    // the session has ended
	Changed Outcome = "changed" // the session does not run this statement any more
	Foreign Outcome = "foreign" // it is not [Seen.Here]
)

// Statement cancels the statement that was seen. With a zero Seen.Statement it cancels whatever the session runs, and nothing if it
// runs nothing. Between the look and the signal are a few microseconds: PostgreSQL has no way without them.
func Statement(ctx context.Context, db *sql.DB, seen Seen) (Outcome, error) {
	return seen.signal(ctx, db, "pg_cancel_backend")
}

// Session ends the session that was seen, whatever it runs.
func Session(ctx context.Context, db *sql.DB, seen Seen) (Outcome, error) {
	seen.Statement = time.Time{}
	return seen.signal(ctx, db, "pg_terminate_backend")
}

// Runs reports whether a session in this state runs a statement.
func Runs(state string) bool { return state == "active" || state == "fastpath function call" }

const (
	itsSession   = `pid = $1 AND (backend_start = $2 OR $2::timestamptz IS NULL)`
	itsStatement = `($3::timestamptz IS NULL OR state IN ('active', 'fastpath function call') AND state_change = $3) IS TRUE`
)

func (s Seen) signal(ctx context.Context, db *sql.DB, function string) (Outcome, error) {
	const query = `SELECT CASE
		WHEN $4::boolean AND (datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()) IS NOT TRUE THEN 'foreign'
		WHEN NOT ` + itsStatement + ` THEN 'changed'
		WHEN {function}(pid) THEN 'asked' ELSE 'gone' END
		FROM pg_stat_activity WHERE ` + itsSession
	var outcome Outcome
	err := db.QueryRowContext(ctx, strings.Replace(query, "{function}", function, 1), append(s.args(), s.Here)...).Scan(&outcome)
	if errors.Is(err, sql.ErrNoRows) {
		return Gone, nil
	}
	return outcome, err
}

// GoesOn reports whether the session goes on, with the statement if one was seen.
func (s Seen) GoesOn(ctx context.Context, db *sql.DB) (on bool, err error) {
	const query = `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE ` + itsSession + ` AND ` + itsStatement + `)`
	err = db.QueryRowContext(ctx, query, s.args()...).Scan(&on)
	return on, err
}

func (s Seen) args() []any {
	known := func(t time.Time) sql.NullTime { return sql.NullTime{Time: t, Valid: !t.IsZero()} }
	return []any{s.PID, known(s.Started), known(s.Statement)}
}
