package main_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// leasesOf makes the tables of leases in a database, and opens a manager of leases, which is closed at the end of the test.
func leasesOf(t *testing.T, dsn, owner string) (*sql.DB, *lease.Manager) {
	t.Helper()
	db := pgtest.SQLDB(t, pgtest.Through(dsn))
	if err := lease.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	leases, err := lease.New(t.Context(), db, lease.Owner(owner))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = leases.Close(context.WithoutCancel(t.Context())) })
	return db, leases
}

// ls shows who leads, who has which slot, and how far schedules have come.
func TestList_showsLeadersSlotsAndSchedules(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	db, leases := leasesOf(t, dsn, "worker-3")
	if err := lease.Elector(leases, lockkey.Of("scheduler"), time.Minute).IsLeader(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := leases.Acquire(t.Context(), lockkey.Of("payments"), time.Minute, lease.Slots(5)); err != nil {
		t.Fatal(err)
	}
	id, _ := lockkey.Of("report", "nightly").Int64()
	_, err := db.ExecContext(t.Context(), `INSERT INTO gormlock_schedule (space, id, name, settled_at, done_at, next_at, attempts, owner, token, failures, problem) VALUES
		(1, $1, 'report/nightly', now(), now() - interval '3 hours', now() + interval '21 hours', 0, 'worker-3', 7, 0, NULL),
		(1, 7, E'bad\x1b[31m', now(), now() - interval '3 hours', now() - interval '2 hours', 0, 'worker-4', 7, 3, E'no such \x1b[31mhost\nat line 2')`, id)
	if err != nil {
		t.Fatal(err)
	}

	r := on(t, dsn, "ls")
	r.is(t, 0, "scheduler", "leads", "payments slot 0", "slot 0 of 5", "SCHEDULE", "LAST TICK", "NEXT TICK", "FAILURES", "LAST RUN BY", "overdue", "report/nightly",
		"waits", "in 20h59m", "3h ago", "worker-3", "no such")
	if strings.Contains(r.out, "\x1b") || strings.Contains(r.out, "line 2") {
		t.Errorf("a problem paints the terminal, or goes on for lines: %q", r.out)
	}
	if late, fine := strings.Index(r.out, "overdue"), strings.Index(r.out, "report/nightly"); late > fine {
		t.Errorf("what is late does not come first: %s", r.out)
	}
	on(t, dsn, "ls", "--json").is(t, 0, `"schedules": [`, `"key": "report/nightly"`, `"failures": 3`, `"leader": true`, `"slots": 5`, `"next": "`)
	if r := on(t, dsn, "ls", "--key", "report/*"); !strings.Contains(r.out, "report/nightly") || strings.Contains(r.out, "overdue") {
		t.Errorf("got %s", r.out)
	}
	if r := on(t, dsn, "ls", "--app", "worker-4"); strings.Contains(r.out, "report/nightly") || !strings.Contains(r.out, "overdue") {
		t.Errorf("got %s", r.out)
	}
	if r := on(t, dsn, "ls", "--waiting"); strings.Contains(r.out, "SCHEDULE") {
		t.Errorf("a schedule is no wait: %s", r.out)
	}
	ran := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- leases.Every(ctx, lockkey.Of("import"), lease.Interval(10*time.Millisecond), func(ctx context.Context, _ time.Time) error {
			close(ran)
			<-ctx.Done()
			return nil
		})
	}()
	pgtest.Await(t, "a run", ran)
	on(t, dsn, "ls").is(t, 0, "runs, try 1")
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
