package main_test

import (
	"strings"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

func TestCancel_endsTheStatementThatWasShown(t *testing.T) {
	t.Parallel()
	s := stage(t)
	env := []string{"DATABASE_URL=" + s.dsn}
	for _, answer := range []string{"", "n\n", "no\n", "yess\n", "\n"} {
		r := program{args: []string{"cancel", s.billing.arg()}, env: env, stdin: answer}.run(t)
		r.is(t, 1, "(billing, role postgres) runs a statement", "pg_advisory_xact_lock(1840925882773462882)", "cancel this statement? [y/N]", "not confirmed")
	}
	select {
	case <-s.billing.done:
		t.Fatal("it was ended without a yes")
	default:
	}
	program{args: []string{"cancel", s.billing.arg()}, env: env, stdin: "y\n"}.run(t).is(t, 0, "the statement has ended")
	<-s.billing.done
	if s.billing.err == nil || !strings.Contains(s.billing.err.Error(), "57014") {
		t.Errorf("got %v", s.billing.err)
	}
	// If there is nothing to cancel, the output says so.
	on(t, s.dsn, "cancel", s.psql.arg(), "--yes").is(t, 1, "runs no statement", "gormlock terminate "+s.psql.arg(), "1 request waits behind it: "+s.worker.arg())
}

func TestTerminate_freesTheLocks(t *testing.T) {
	t.Parallel()
	s := stage(t)
	on(t, s.dsn, "terminate", "--yes", s.worker.arg()).is(t, 0, "holds int64(1840925882773462882)", "1 request waits behind it", "the session has ended")
	<-s.billing.done
	if s.billing.err != nil {
		t.Errorf("the waiter got %v", s.billing.err)
	}
	on(t, s.dsn, "terminate", "--yes", s.worker.arg()).is(t, 2, "there is no process")
	on(t, s.dsn, "terminate", s.psql.arg()).is(t, 1, "is idle in a transaction", "not confirmed")
}

func TestEnd_refusesWhatIsNoSession(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	conn := pgtest.Conn(t)
	var checkpointer string
	if err := conn.QueryRow(t.Context(), "SELECT pid::text FROM pg_stat_activity WHERE backend_type = 'checkpointer'").Scan(&checkpointer); err != nil {
		t.Fatal(err)
	}
	on(t, dsn, "terminate", "--yes", checkpointer).is(t, 2, "is the checkpointer, a process of the server itself")
	on(t, dsn, "cancel", "--yes", "2147483647").is(t, 2, "there is no process 2147483647")
	on(t, dsn, "terminate", "--yes", "2147483648").is(t, 2, "is not a PID")
}

// L18: a plain role sees who waits for whom, but not what they do.
func TestPlainRole_isToldWhatItCannotSee(t *testing.T) {
	t.Parallel()
	s := stage(t)
	s.plainRole(t)
	dsn := strings.Replace(s.dsn, "postgres@", "gormlock_cli_plain:s3cret@", 1)
	r := on(t, dsn, "ls")
	r.is(t, 0, "(hidden from this role)", "not seen: ", "GRANT pg_read_all_stats TO gormlock_cli_plain", "2 requests wait")
	on(t, dsn, "why", s.billing.arg()).is(t, 1, "belongs to another role", "waits for no lock: the others wait for it", "GRANT pg_read_all_stats")
	r = on(t, dsn, "terminate", "--yes", s.billing.arg())
	r.is(t, 2, "(42501)")
	on(t, dsn, "cancel", "--yes", s.billing.arg()).is(t, 2, "(42501)")
	r = on(t, dsn, "doctor")
	if r.code == 2 || strings.Contains(r.out+r.stderr, "s3cret") {
		t.Errorf("doctor: %d\n%s%s", r.code, r.out, r.stderr)
	}
	join(t, s.dsn, "admin").exec(`DO $$ BEGIN EXECUTE format('REVOKE CONNECT ON DATABASE %I FROM PUBLIC', current_database()); END $$`)
	for _, args := range [][]string{{"ls"}, {"doctor"}, {"key", "a"}, {"why", "1"}} {
		on(t, dsn, args...).is(t, 2, "permission denied for database", "(42501)")
	}
}

// plainRole makes the role gormlock_cli_plain, which all tests of a server share.
func (s staged) plainRole(t *testing.T) {
	t.Helper()
	admin := join(t, s.dsn, "admin")
	admin.exec(`DO $$ BEGIN
		PERFORM pg_advisory_xact_lock(1);
		IF to_regrole('gormlock_cli_plain') IS NULL THEN CREATE ROLE gormlock_cli_plain LOGIN PASSWORD 's3cret'; END IF;
	END $$`)
}

// If a session hides its statements, by track_activities, the output only says what is known.
func TestUntracked_isToldWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	s := stage(t)
	s.psql.exec("SET track_activities = off")
	const unknown = "does not show what it does: track_activities is off for it"
	r := on(t, s.dsn, "why", s.billing.arg())
	r.is(t, 1, unknown, "whether it works or is idle in a transaction is not shown", "gormlock terminate "+s.psql.arg()+" ends its session")
	if strings.Contains(r.out, "a process of the server") {
		t.Errorf("a session of a client is no process of the server itself: %s", r.out)
	}
	r = on(t, s.dsn, "cancel", "--yes", s.psql.arg())
	r.is(t, 1, unknown, "whether "+s.psql.arg()+" runs a statement is not shown", "SELECT pg_cancel_backend("+s.psql.arg()+")", "gormlock terminate "+s.psql.arg())
	if strings.Contains(r.out+r.stderr, "runs no statement") {
		t.Errorf("nobody knows that: %s", r.stderr)
	}
	on(t, s.dsn, "ls").is(t, 0, "(track_activities is off for it)")
	on(t, s.dsn, "terminate", "--yes", s.psql.arg()).is(t, 0, "the session has ended")
}

// A role that may signal others but cannot see their statements is not told that a statement has ended.
func TestCancel_ofWhatIsHidden(t *testing.T) {
	t.Parallel()
	s := stage(t)
	s.plainRole(t)
	join(t, s.dsn, "admin").exec(`DO $$ BEGIN
		PERFORM pg_advisory_xact_lock(1);
		IF to_regrole('gormlock_cli_signaller') IS NULL THEN
			CREATE ROLE gormlock_cli_signaller LOGIN PASSWORD 's3cret';
			GRANT pg_signal_backend TO gormlock_cli_signaller;
		END IF;
	END $$`)
	plain := strings.Replace(s.dsn, "postgres@", "gormlock_cli_plain:s3cret@", 1)
	victim, idle := join(t, plain, "hidden"), join(t, plain, "hidden too")
	dsn := strings.Replace(s.dsn, "postgres@", "gormlock_cli_signaller:s3cret@", 1)
	const says = "was told to cancel what it runs, if anything; what it does is hidden: GRANT pg_read_all_stats"
	on(t, dsn, "cancel", "--yes", idle.arg()).is(t, 1, says)
	victim.wait(pgtest.Observe(t, s.dsn), take(t, lockkey.Of("invoice", 42)))
	on(t, dsn, "cancel", "--yes", victim.arg()).is(t, 1, says)
	<-victim.done
	if victim.err == nil || !strings.Contains(victim.err.Error(), "57014") {
		t.Errorf("got %v", victim.err)
	}
}
