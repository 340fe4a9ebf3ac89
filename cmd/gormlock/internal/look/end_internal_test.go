package look

import (
	"strings"
	"testing"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/cli"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// No command ends the process that answers it. Nobody can know its number beforehand.
func TestEnd_refusesItsOwnProcess(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t, pgtest.MaxConns(1))
	var own int
	if err := db.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&own); err != nil {
		t.Fatal(err)
	}
	b, err := backendAt(t.Context(), db, own)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []verb{cancelling, terminating} {
		if err := (&End{verb: v}).refuse(b); err == nil || !strings.Contains(err.Error(), "the process that answers this very command") {
			t.Errorf("%s: %v", v.name, err)
		}
	}
}

// A process that got the number of the shown one is spared, and so is a later statement.
func TestEnd_letsASuccessorAlone(t *testing.T) {
	t.Parallel()
	db := pgtest.SQLDB(t)
	victim := pgtest.Conn(t)
	pid := int(victim.PgConn().PID())
	b, err := backendAt(t.Context(), db, pid)
	if err != nil {
		t.Fatal(err)
	}
	p := &cli.Program{}
	b.State, b.StateSince = "active", b.now
	if err := (&End{verb: cancelling, wait: 1}).signal(t.Context(), p, db, b); err == nil || !strings.Contains(err.Error(), "runs something else by now") {
		t.Errorf("cancel: %v", err)
	}
	b.Started = b.Started.Add(-1e9)
	if err := (&End{verb: terminating, wait: 1}).signal(t.Context(), p, db, b); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("terminate: %v", err)
	}
	if err := victim.Ping(t.Context()); err != nil {
		t.Errorf("it was ended: %v", err)
	}
}
