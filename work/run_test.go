package work_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

func TestRun_endsWithinItsGrace(t *testing.T) {
	t.Parallel()
	db := open(t)
	enqueue(t, db, "slow", "waiting", "waiting")
	begun, goOn := make(chan struct{}), make(chan struct{})
	w := worker(t, db, func(ctx context.Context, m *Mail) error {
		close(begun)
		<-goOn
		return ctx.Err()
	}, work.Workers(1))
	end := start(t, w)
	pgtest.Await(t, "the first handler", begun)
	over := make(chan error)
	go func() { over <- end() }()
	time.Sleep(50 * time.Millisecond) //nolint:forbidigo // for a worker that would wrongly begin the next
	close(goOn)
	if err := <-over; err != nil {
		t.Error(err)
	}
	if s := states(t, db); s["done"] != 1 || s["ready"] != 2 {
		t.Errorf("states %v", s)
	}
}

// A run ends while a claim is on its way. The server executes the claim, and without care nobody would know of its jobs until their leases end.
func TestRun_endsInTheMiddleOfAClaim(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"comes", "is lost"} {
		t.Run("the answer "+answer, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			enqueue(t, db, "1", "2", "3")
			must(t, db.Exec("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.2); RETURN NEW; EXCEPTION WHEN query_canceled THEN RETURN NEW; END'").Error)
			must(t, db.Exec("CREATE TRIGGER slow BEFORE UPDATE ON mails FOR EACH ROW WHEN (NEW.state = 'running') EXECUTE FUNCTION slow()").Error)
			if answer == "is lost" {
				must(t, db.Callback().Row().After("gorm:row").Register("lose", func(tx *gorm.DB) {
					if !tx.DryRun && strings.Contains(tx.Statement.SQL.String(), "SKIP LOCKED") {
						_ = tx.AddError(io.ErrUnexpectedEOF)
					}
				}))
			}
			w := worker(t, db, func(context.Context, *Mail) error { return errors.New("begun after the end") })
			end := start(t, w)
			claiming := func() bool {
				var n int64
				must(t, db.Raw("SELECT count(*) FROM pg_locks WHERE relation = 'mails'::regclass AND mode = 'RowExclusiveLock'").Scan(&n).Error)
				return n > 0
			}
			eventually(t, "the claim is on its way", claiming)
			if err := end(); err != nil {
				t.Error(err)
			}
			eventually(t, "the claim is over", func() bool { return !claiming() })
			if s := states(t, db); s["ready"] != 3 {
				t.Errorf("states %v", s)
			}
			var mails []Mail
			must(t, db.Raw("SELECT * FROM mails").Scan(&mails).Error)
			for _, m := range mails {
				if m.Attempts != 0 || m.ClaimedBy != "" || m.ClaimedUntil != nil {
					t.Errorf("given back as %+v", m)
				}
			}
		})
	}
}

func TestRun_givesBackWhenItsGraceIsOver(t *testing.T) {
	t.Parallel()
	db := open(t)
	mails := enqueue(t, db, "heeds", "stuck")
	begun, stuck := make(chan struct{}, 2), make(chan struct{})
	w := worker(t, db, func(ctx context.Context, m *Mail) error {
		begun <- struct{}{}
		if m.Text == "stuck" {
			<-stuck
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}, work.Workers(2), work.Grace(20*time.Millisecond))
	end := start(t, w)
	<-begun
	<-begun
	err := end()
	close(stuck)
	if err == nil || !strings.Contains(err.Error(), "2 handlers of mails") {
		t.Errorf("Run: %v", err)
	}
	for _, each := range mails {
		if m := reload(t, db, each.ID); m.State != "ready" || m.Attempts != 0 || m.ClaimedBy != "" || m.ClaimedUntil != nil {
			t.Errorf("%s: %+v", each.Text, m)
		}
	}
}

// listens waits until the backend of a worker listens. The condition finds that backend.
func listens(t *testing.T, db *gorm.DB, condition string) {
	t.Helper()
	eventually(t, "the worker listens", func() bool {
		var listening int64
		must(t, db.Raw("SELECT count(*) FROM pg_stat_activity WHERE "+condition).Scan(&listening).Error)
		return listening > 0
	})
}

func TestRun_hearsOfJobs(t *testing.T) {
	t.Parallel()
	db := open(t)
	var n atomic.Int32
	// Without notifications it would look once an hour, and for passed jobs every five seconds.
	w := worker(t, db, func(context.Context, *Mail) error { n.Add(1); return nil }, work.Poll(time.Hour))
	start(t, w)
	listens(t, db, "application_name = 'gormlock work' AND query LIKE '%LISTEN%'")
	late := 0 // without notifications most jobs would be late; on a slow machine a few are
	for i := range int32(20) {
		began := time.Now()
		must(t, db.Transaction(func(tx *gorm.DB) error {
			enqueue(t, tx, "x")
			return nil
		}))
		eventually(t, "the job", func() bool { return n.Load() == i+1 })
		if time.Since(began) > 3*time.Second {
			late++
		}
	}
	if late > 7 {
		t.Errorf("%d of 20 jobs began late", late)
	}
}

// The connection that listens for all workers of a process does not depend on the pool of the first worker.
func TestRun_hearsWithoutTheFirstPool(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	first, second := pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New())), pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
	must(t, work.Migrate(first, &Mail{}))
	done := func(context.Context, *Mail) error { return nil }
	end := start(t, worker(t, first, done))
	const listening = "application_name = 'gormlock work' AND query LIKE '%LISTEN%' AND datname = current_database()"
	listens(t, second, listening)
	start(t, worker(t, second, done))
	var name string
	must(t, second.Raw("SELECT current_database()").Scan(&name).Error)
	eventually(t, "both listen", func() bool { return work.Ears(name) == 2 })
	must(t, end())
	pool, err := first.DB()
	must(t, err)
	must(t, pool.Close())
	var pid int
	must(t, second.Raw("SELECT pid FROM pg_stat_activity WHERE "+listening).Scan(&pid).Error)
	must(t, second.Exec("SELECT pg_terminate_backend(?)", pid).Error)
	listens(t, second, fmt.Sprintf("%s AND pid <> %d", listening, pid))
}

// A job whose worker was cut off is taken over, and the first worker can no longer complete it.
func TestRun_takesOver(t *testing.T) {
	t.Parallel()
	db := open(t)
	mail := enqueue(t, db, "x")[0]
	cut, cause, late := make(chan struct{}), make(chan error, 1), make(chan error, 1)
	var attempts atomic.Int32
	w := worker(t, db, func(ctx context.Context, m *Mail) error {
		if attempts.Add(1) > 1 {
			return nil
		}
		// The lease ends, as if it had not been renewed for long.
		if err := db.Exec("UPDATE mails SET claimed_until = now() - interval '1 hour'").Error; err != nil {
			return err
		}
		close(cut)
		select {
		case <-ctx.Done():
		case <-time.After(bound):
		}
		cause <- context.Cause(ctx)
		late <- work.Complete(db, m)
		return errors.New("late")
	}, work.Poll(10*time.Millisecond))
	start(t, w)
	pgtest.Await(t, "the first attempt", cut)
	if err := <-cause; !errors.Is(err, work.ErrTakenOver) {
		t.Errorf("the cause is %v", err)
	}
	if err := <-late; !errors.Is(err, gormlock.ErrStale) {
		t.Errorf("completed late: %v", err)
	}
	eventually(t, "the second attempt", func() bool { return reload(t, db, mail.ID).State == "done" })
	if m := reload(t, db, mail.ID); m.Attempts != 2 || !strings.Contains(m.LastError, "died or lost its lease") {
		t.Errorf("%+v", m)
	}
}

func TestRun_buriesTheLastAttemptOfAWorkerThatDied(t *testing.T) {
	t.Parallel()
	db := open(t)
	mail := &Mail{Job: work.Job{MaxAttempts: 2}}
	must(t, work.Enqueue(db, mail))
	must(t, db.Exec("UPDATE mails SET state = 'running', attempts = 2, claimed_by = 'gone', claimed_until = now() - interval '1 s'").Error)
	drain(t, worker(t, db, func(context.Context, *Mail) error { t.Error("a third attempt"); return nil }))
	if m := reload(t, db, mail.ID); m.State != "dead" || m.Attempts != 2 || !strings.Contains(m.LastError, "gone") {
		t.Errorf("%+v", m)
	}
}

// One statement renews all leases of a process, even while a handler has locked the row of its job.
func TestRun_renewsLeases(t *testing.T) {
	t.Parallel()
	db := open(t)
	mails := enqueue(t, db, "a", "b", "locks its row")
	goOn := make(chan struct{})
	const held = 3 * time.Second // a slow machine may stand still for a good part of a second
	var attempts atomic.Int32
	w := worker(t, db, func(ctx context.Context, m *Mail) error {
		attempts.Add(1)
		if m.Text == "locks its row" {
			return db.Transaction(func(tx *gorm.DB) error {
				if err := tx.Model(m).Update("account_id", 1).Error; err != nil {
					return err
				}
				<-goOn
				return work.Complete(tx, m)
			})
		}
		<-goOn
		return ctx.Err()
	}, work.Lease(held))
	start(t, w)
	eventually(t, "three attempts", func() bool { return attempts.Load() == 3 })
	first := *reload(t, db, mails[0].ID).ClaimedUntil
	eventually(t, "three renewals", func() bool { return reload(t, db, mails[0].ID).ClaimedUntil.Sub(first) > held })
	if m := reload(t, db, mails[0].ID); m.Version != 2 {
		t.Errorf("renewing has moved the version to %d", m.Version)
	}
	close(goOn)
	eventually(t, "all done", func() bool { return states(t, db)["done"] == 3 })
	if n := attempts.Load(); n != 3 {
		t.Errorf("%d attempts", n)
	}
}

// A job begins when its RunAt comes, without polling.
func TestRun_wakesAtTheNextRunAt(t *testing.T) {
	t.Parallel()
	db := open(t)
	late := make(chan time.Duration, 12)
	w := worker(t, db, func(_ context.Context, m *Mail) error {
		if late <- time.Since(m.RunAt); m.Text == "retried" && m.Attempts == 1 {
			return errors.New("once")
		}
		return nil
	}, work.Poll(time.Hour), work.Backoff(func(int) time.Duration { return 2500 * time.Millisecond }))
	start(t, w)
	mails := []*Mail{{Text: "retried"}}
	for i := range 10 {
		mails = append(mails, &Mail{Text: "later", Job: work.Job{RunAt: time.Now().Add(time.Second + time.Duration(i)*300*time.Millisecond)}})
	}
	must(t, work.Enqueue(db, mails...))
	eventually(t, "all done", func() bool { return states(t, db)["done"] == 11 })
	all := make([]time.Duration, cap(late))
	for i := range all {
		all[i] = <-late
	}
	slices.Sort(all)
	if all[len(all)/2] > 1300*time.Millisecond { // waiting for the regular look every five seconds would take 2.5 s on average
		t.Errorf("they began late: %s", all)
	}
}

// Jobs that were claimed in advance are given back if handlers become slow.
func TestRun_givesBackWhatItClaimedAhead(t *testing.T) {
	t.Parallel()
	db := open(t)
	goOn := make(chan struct{})
	defer close(goOn)
	var quick atomic.Int32
	w := worker(t, db, func(_ context.Context, m *Mail) error {
		if m.Text == "slow" {
			<-goOn
		}
		quick.Add(1)
		return nil
	}, work.Workers(2), work.Grace(0))
	texts := make([]string, 300)
	for i := 200; i < 300; i++ {
		texts[i] = "slow"
	}
	enqueue(t, db, texts...)
	start(t, w)
	eventually(t, "the quick ones", func() bool { return quick.Load() == 200 })
	eventually(t, "the others are given back", func() bool { s := states(t, db); return s["ready"] == 98 && s["running"] == 2 })
	var counted int64
	must(t, db.Raw("SELECT count(*) FROM mails WHERE state = 'ready' AND attempts > 0").Scan(&counted).Error)
	if counted != 0 {
		t.Errorf("an attempt was counted of %d jobs that were given back", counted)
	}
}
