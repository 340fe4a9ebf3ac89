package work_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gormlock/gormlock/work"
)

// If the server refuses each statement, whether or not there is anything to change, Drain ends.
func TestDrain_everyStatementIsRefused(t *testing.T) {
	t.Parallel()
	for of, opts := range map[string][]work.Option{"plain": nil, "OnePer": {work.OnePer("account_id")}, "FairBy": {work.FairBy("account_id")}} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			db := open(t, opts...)
			enqueue(t, db, "a", "b")
			must(t, db.Exec(`CREATE FUNCTION closed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'we are closed'; END $$;
				CREATE TRIGGER closed BEFORE UPDATE ON mails FOR EACH STATEMENT EXECUTE FUNCTION closed()`).Error)
			ctx, stop := context.WithTimeout(t.Context(), bound)
			defer stop()
			if _, err := worker(t, db, (&texts{}).handle, opts...).Drain(ctx); err == nil || !strings.Contains(err.Error(), "we are closed") {
				t.Error(err)
			}
		})
	}
}

// While no outcome can be stored, a worker does not run all jobs, because they would run again.
func TestOutcomes_noneCanBeStored(t *testing.T) {
	t.Parallel()
	db := open(t)
	const most, jobs = 2000, 4000
	must(t, db.Exec("INSERT INTO mails (text) SELECT 'bad' FROM generate_series(1, ?) g", jobs).Error)
	must(t, db.Exec(trigger("NEW.state = 'done'", raise)).Error)
	var ran atomic.Int64
	w := worker(t, db, func(context.Context, *Mail) error { ran.Add(1); return nil }, work.Lease(time.Minute))
	ctx, stop := context.WithTimeout(t.Context(), 2*bound)
	defer stop()
	if _, err := w.Drain(ctx); err == nil || ctx.Err() != nil {
		t.Error(err)
	}
	if n := ran.Load(); n < most || n > most+most/2+200 { // a batch is on its way
		t.Errorf("%d jobs ran", n)
	}
}

// A job without a notification is found within seconds, even if there is a long list of jobs that somebody has locked.
func TestHeads_behindManyLockedJobs(t *testing.T) {
	t.Parallel()
	for of, opts := range map[string][]work.Option{"OnePer": {work.OnePer("account_id")}, "FairBy": {work.FairBy("account_id")}} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			db := open(t, opts...)
			must(t, db.Exec("INSERT INTO mails (text, account_id) SELECT 'locked', g FROM generate_series(1, 3000) g").Error)
			tx := db.Begin()
			defer tx.Rollback()
			must(t, tx.Exec("SELECT id FROM mails FOR UPDATE").Error)
			var done texts
			end := start(t, worker(t, db, done.handle, append(opts, work.Workers(1))...))
			<-time.After(time.Second) // the worker has the list by then
			must(t, db.Exec("INSERT INTO mails (text, account_id, priority) VALUES ('new', 50000, 9)").Error)
			began := time.Now()
			eventually(t, "the new job is done", func() bool { return states(t, db)["done"] == 1 })
			t.Logf("after %s", time.Since(began).Round(100*time.Millisecond))
			must(t, tx.Rollback().Error)
			must(t, end())
		})
	}
}
