package look

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/halt"
)

// backend is a process of the server.
type backend struct {
	inspect.Session
	database string
	kind     string // backend_type: "client backend", "autovacuum worker", ...
	own      bool   // the process that answers this query
	now      time.Time
}

// backendAt is the process with this pid, in any database.
func backendAt(ctx context.Context, db *sql.DB, pid int) (*backend, error) {
	const query = `SELECT coalesce(application_name, ''), coalesce(usename, ''), coalesce(datname, ''), coalesce(backend_type, ''),
		coalesce(CASE WHEN client_addr IS NOT NULL THEN host(client_addr) || ':' || client_port WHEN client_port = -1 THEN 'local' END, ''),
		coalesce(state, ''), CASE WHEN state IS NULL THEN '' ELSE left(query, 2000) END, backend_start, xact_start,
		state_change, pid = pg_backend_pid(), clock_timestamp()
		FROM pg_stat_activity WHERE pid = $1`
	b := &backend{}
	b.PID = pid
	var started, began, since sql.NullTime
	err := db.QueryRowContext(ctx, query, pid).Scan(&b.Application, &b.User, &b.database, &b.kind, &b.Client, &b.State, &b.Query,
		&started, &began, &since, &b.own, &b.now)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("there is no process %d on this server: gormlock ls shows who holds locks", pid)
	case err != nil:
		return nil, server.ErrorOf(err)
	}
	b.Started, b.Began, b.StateSince, b.InTransaction = started.Time, began.Time, since.Time, began.Valid
	b.Query = server.Masked(b.Query)
	b.Hidden = b.kind == "" // every process has a kind, but a role without privileges only sees its own
	return b, nil
}

// pidOf reads the argument PID.
func pidOf(text string) (int, error) {
	pid, err := strconv.ParseInt(text, 10, 32)
	if err != nil || pid < 1 {
		return 0, fmt.Errorf("%q is not a PID: gormlock ls shows the PIDs", text)
	}
	return int(pid), nil
}

// describe says in words who it is and what it does.
func describe(s *inspect.Session, now time.Time) string {
	who := process(s)
	if s.Application != "" {
		who += " (" + terminal.OneLine(s.Application)
		if s.User != "" {
			who += ", role " + terminal.OneLine(s.User)
		}
		who += ")"
	} else if s.User != "" {
		who += " (role " + terminal.OneLine(s.User) + ")"
	}
	return who + " " + state(s, now)
}

// state says what a session does, as the end of a sentence.
func state(s *inspect.Session, now time.Time) string {
	since := ""
	if !s.StateSince.IsZero() {
		since = " for " + terminal.Span(now.Sub(s.StateSince))
	}
	switch {
	case s.Prepared != "":
		return "is a prepared transaction that waits for its end" + since
	case s.Gone:
		return "has ended meanwhile"
	case s.Hidden:
		return "belongs to another role, what it does is hidden from this one"
	case halt.Runs(s.State):
		return "runs a statement" + since
	case s.State == "disabled":
		return "does not show what it does: track_activities is off for it"
	case s.State == "idle in transaction":
		return "is idle in a transaction" + since
	case s.State == "idle in transaction (aborted)":
		return "is idle in an aborted transaction" + since
	case s.State == "idle":
		return "is idle" + since
	case s.State == "":
		return "is a process of the server"
	}
	return "is " + s.State + since
}
