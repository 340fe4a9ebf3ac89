package work_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

func TestDrain_worksByPriorityThenID(t *testing.T) {
	t.Parallel()
	db := open(t)
	must(t, work.Enqueue(db,
		&Mail{Text: "1"}, &Mail{Text: "2", Job: work.Job{Queue: "bulk"}}, &Mail{Text: "3", Job: work.Job{Priority: 5}},
		&Mail{Text: "4", Job: work.Job{Priority: -1}}, &Mail{Text: "5"}, &Mail{Text: "6", Job: work.Job{Priority: 5, Queue: "bulk"}}))
	var seen texts
	if n := drain(t, worker(t, db, seen.handle, work.Workers(1))); n != 6 {
		t.Errorf("%d attempts, want 6", n)
	}
	seen.mustBe(t, "3", "6", "1", "2", "5", "4")
	if s := states(t, db); s["done"] != 6 {
		t.Errorf("states %v", s)
	}
}

func TestDrain_takesItsQueuesOnly(t *testing.T) {
	t.Parallel()
	db := open(t)
	must(t, work.Enqueue(db, &Mail{Text: "1"}, &Mail{Text: "2", Job: work.Job{Queue: "bulk"}}, &Mail{Text: "3", Job: work.Job{Queue: "slow"}}))
	var seen texts
	drain(t, worker(t, db, seen.handle, work.Workers(1), work.Queues("bulk", "default")))
	seen.mustBe(t, "1", "2")
	drain(t, worker(t, db, seen.handle))
	seen.mustBe(t, "1", "2", "3")
}

func TestDrain_findsWhatHandlersEnqueue(t *testing.T) {
	t.Parallel()
	db := open(t)
	enqueue(t, db, "0")
	var seen texts
	w := worker(t, db, func(ctx context.Context, m *Mail) error {
		seen.add(m.Text)
		if len(m.Text) < 5 {
			return work.Enqueue(db.WithContext(ctx), &Mail{Text: m.Text + "0", Job: work.Job{Priority: 1}})
		}
		return nil
	})
	if n := drain(t, w); n != 5 {
		t.Errorf("%d attempts", n)
	}
}

func TestDrain_manyJobs(t *testing.T) {
	t.Parallel()
	db := open(t)
	const n = 3000
	var mails []*Mail
	for i := range n {
		mails = append(mails, &Mail{Text: fmt.Sprint(i), Job: work.Job{Priority: i % 3, Queue: []string{"a", "b"}[i%2]}})
	}
	must(t, work.Enqueue(db, mails...))
	var seen texts
	if got := drain(t, worker(t, db, seen.handle, work.Workers(16))); got != n || states(t, db)["done"] != n {
		t.Errorf("%d attempts, states %v", got, states(t, db))
	}
}

func TestEnqueue_isPartOfTheTransaction(t *testing.T) {
	t.Parallel()
	db := open(t)
	boom := errors.New("boom")
	err := db.Transaction(func(tx *gorm.DB) error {
		enqueue(t, tx, "never")
		return boom
	})
	if !errors.Is(err, boom) {
		t.Fatal(err)
	}
	must(t, db.Transaction(func(tx *gorm.DB) error {
		m := enqueue(t, tx, "a")[0]
		if m.ID == 0 || m.Queue != "default" || m.State != "ready" || m.MaxAttempts != 20 || m.RunAt.IsZero() || m.Version != 1 {
			t.Errorf("the struct is %+v", m)
		}
		return nil
	}))
	must(t, work.Enqueue[Mail](db))
	var seen texts
	drain(t, worker(t, db, seen.handle))
	seen.mustBe(t, "a")
}

func TestComplete_isPartOfTheEffect(t *testing.T) {
	t.Parallel()
	for name, plugin := range map[string]*gormlock.Plugin{"": gormlock.New(), "plain transactions": gormlock.New(gormlock.PlainTransactions())} {
		transactions := map[string]func(*gorm.DB, func(*gorm.DB) error) error{
			"gormlock's": func(db *gorm.DB, fn func(*gorm.DB) error) error { return gormlock.Transaction(db, fn) },
			"GORM's":     func(db *gorm.DB, fn func(*gorm.DB) error) error { return db.Transaction(fn) },
			"a savepoint": func(db *gorm.DB, fn func(*gorm.DB) error) error {
				return db.Transaction(func(tx *gorm.DB) error { return tx.Transaction(fn) })
			},
			"a savepoint that is given up": func(db *gorm.DB, fn func(*gorm.DB) error) error {
				return db.Transaction(func(tx *gorm.DB) error {
					var failed error
					err := tx.Transaction(func(tx *gorm.DB) error {
						failed = fn(tx)
						return failed
					})
					if failed == nil {
						return err
					}
					return nil // the transaction is committed without it
				})
			},
		}
		for of, transaction := range transactions {
			t.Run(name+" "+of, func(t *testing.T) {
				t.Parallel()
				completes(t, plugin, transaction)
			})
		}
	}
}

func completes(t *testing.T, plugin *gormlock.Plugin, transaction func(*gorm.DB, func(*gorm.DB) error) error) {
	t.Helper()
	db := openWith(t, pgtest.Plugin(plugin))
	mails := enqueue(t, db, "good", "rolled back", "hidden")
	boom := errors.New("boom")
	w := worker(t, db, func(ctx context.Context, m *Mail) error {
		var failed error
		err := transaction(db.WithContext(ctx), func(tx *gorm.DB) error {
			failed = work.Complete(tx, m)
			if failed == nil {
				failed = tx.Create(&Effect{JobID: m.ID}).Error
			}
			if failed == nil && m.Text != "good" {
				failed = boom
			}
			return failed
		})
		if m.Text == "hidden" {
			return nil // the error is swallowed
		}
		return errors.Join(err, failed)
	}, work.Backoff(func(int) time.Duration { return time.Hour }))
	if n := drain(t, w); n != 3 {
		t.Errorf("%d attempts", n)
	}
	for i, want := range []string{"done", "later", "later"} {
		if m := reload(t, db, mails[i].ID); m.State != want || m.Attempts != 1 {
			t.Errorf("%s: %s after %d attempts, %q", m.Text, m.State, m.Attempts, m.LastError)
		}
	}
	var effects int64
	must(t, db.Model(&Effect{}).Count(&effects).Error)
	if effects != 1 {
		t.Errorf("%d effects", effects)
	}
}

func TestComplete_twiceAndByStrangers(t *testing.T) {
	t.Parallel()
	db := open(t)
	mails := enqueue(t, db, "a", "b")
	w := worker(t, db, func(ctx context.Context, m *Mail) error {
		if err := work.Complete(db.WithContext(ctx), m); err != nil {
			return err
		}
		if err := work.Complete(db.WithContext(ctx), m); !errors.Is(err, gormlock.ErrStale) {
			t.Errorf("a second time: %v", err)
		}
		return nil
	})
	drain(t, w)
	if s := states(t, db); s["done"] != 2 {
		t.Errorf("states %v", s)
	}
	if err := work.Complete(db, mails[0]); !errors.Is(err, gormlock.ErrStale) {
		t.Errorf("who has not claimed it: %v", err)
	}
}

func TestHandler_failsAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	db := open(t)
	must(t, work.Enqueue(db, &Mail{Text: "x", Job: work.Job{MaxAttempts: 3}}))
	var asked []int
	var attempts []int
	w := worker(t, db, func(_ context.Context, m *Mail) error {
		attempts = append(attempts, m.Attempts)
		return fmt.Errorf("no. %d", m.Attempts)
	}, work.Backoff(func(n int) time.Duration { asked = append(asked, n); return 0 }))
	if n := drain(t, w); n != 3 || fmt.Sprint(attempts, asked) != "[1 2 3] [1 2]" {
		t.Errorf("%d: attempts %v, backoff %v", n, attempts, asked)
	}
	var m Mail
	must(t, db.First(&m).Error)
	if m.State != "dead" || m.LastError != "no. 3" || m.Attempts != 3 || m.ClaimedUntil != nil {
		t.Errorf("%+v", m)
	}
	if n, err := work.Requeue(t.Context(), db, &Mail{}, m.ID, 999); n != 1 || err != nil {
		t.Errorf("Requeue: %d, %v", n, err)
	}
	if m := reload(t, db, m.ID); m.State != "ready" || m.Attempts != 0 {
		t.Errorf("%+v", m)
	}
	if n, err := work.Requeue(t.Context(), db, &Mail{}); n != 0 || !errors.Is(err, gormlock.ErrOption) {
		t.Errorf("without ids: %d, %v", n, err)
	}
	if n := drain(t, w); n != 3 {
		t.Errorf("%d attempts after Requeue", n)
	}
}

func TestHandler_laterAndDead(t *testing.T) {
	t.Parallel()
	db := open(t)
	mails := enqueue(t, db, "later", "dead", "wrapped", "at once")
	cause := errors.New("because")
	times := 0
	w := worker(t, db, func(_ context.Context, m *Mail) error {
		switch m.Text {
		case "later":
			return work.Later(time.Hour, cause)
		case "dead":
			return work.Dead(cause)
		case "wrapped":
			return fmt.Errorf("outer: %w", work.Later(time.Hour, nil))
		}
		if times++; times < 4 {
			return work.Later(0, nil)
		}
		return nil
	}, work.Workers(1))
	drain(t, w)
	for i, want := range []string{"later because 0", "dead because 1", "later outer: again in 1h0m0s 0", "done again in 0s 1"} {
		m := reload(t, db, mails[i].ID)
		if got := fmt.Sprint(m.State, " ", m.LastError, " ", m.Attempts); got != want {
			t.Errorf("%s: %s, want %s", m.Text, got, want)
		}
	}
	if err := work.Later(0, cause); !errors.Is(err, cause) {
		t.Error("Later hides its cause")
	}
	if err := work.Dead(cause); !errors.Is(err, cause) {
		t.Error("Dead hides its cause")
	}
}

func TestHandler_panicsAndEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	db := open(t)
	mails := enqueue(t, db, "panic", "goexit", "good", "bad text")
	w := worker(t, db, func(_ context.Context, m *Mail) error {
		switch m.Text {
		case "panic":
			panic("oh no")
		case "goexit":
			(&testing.T{}).SkipNow()
		case "bad text":
			return errors.New("nul \x00 and \xff\xfe")
		}
		return nil
	}, work.Workers(1), work.Backoff(func(int) time.Duration { panic("in Backoff") }))
	if n := drain(t, w); n != 4 {
		t.Errorf("%d attempts", n)
	}
	m := reload(t, db, mails[0].ID)
	if m.State != "later" || !strings.Contains(m.LastError, "panic: oh no") || !strings.Contains(m.LastError, "drain_test.go") {
		t.Errorf("%+v", m)
	}
	for i, want := range map[int]string{1: "later the handler ended its goroutine", 2: "done ", 3: "later nul \\x00 and \uFFFD"} {
		if m := reload(t, db, mails[i].ID); m.State+" "+m.LastError != want {
			t.Errorf("%s: %s %q", m.Text, m.State, m.LastError)
		}
	}
}

// A handler may change its own row, by its struct or without it, and still keeps the job.
func TestHandler_updatesItsOwnRow(t *testing.T) {
	t.Parallel()
	db := open(t)
	mails := enqueue(t, db, "struct", "bulk", "struct and Complete")
	w := worker(t, db, func(ctx context.Context, m *Mail) error {
		if m.Text == "bulk" {
			return db.WithContext(ctx).Model(&Mail{}).Where("id = ?", m.ID).Update("account_id", 7).Error
		}
		was := m.Text
		if err := db.WithContext(ctx).Model(m).Update("account_id", 7).Error; err != nil || was == "struct" {
			return err
		}
		return work.Complete(db.WithContext(ctx), m)
	}, work.Workers(1))
	drain(t, w)
	for _, each := range mails {
		if m := reload(t, db, each.ID); m.State != "done" || m.AccountID == nil || *m.AccountID != 7 {
			t.Errorf("%s: %+v", each.Text, m)
		}
	}
}

// A job whose end cannot be stored does not affect the others.
func TestOutcomes_areStoredOneByOneWhereTheyMust(t *testing.T) {
	t.Parallel()
	db := open(t)
	must(t, db.Exec(`CREATE FUNCTION picky() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF NEW.last_error LIKE '%é%' THEN RAISE 'not this one' USING ERRCODE = '22P05'; END IF; RETURN NEW; END $$`).Error)
	must(t, db.Exec("CREATE TRIGGER picky BEFORE UPDATE ON mails FOR EACH ROW EXECUTE FUNCTION picky()").Error)
	mails := enqueue(t, db, "a", "é", "c")
	w := worker(t, db, func(_ context.Context, m *Mail) error { return work.Dead(errors.New("no " + m.Text)) })
	drain(t, w)
	for i, want := range []string{"dead no a", `dead no \u00e9`, "dead no c"} {
		if m := reload(t, db, mails[i].ID); m.State+" "+m.LastError != want {
			t.Errorf("%s %q, want %s", m.State, m.LastError, want)
		}
	}
}

func TestRunAt_isWaitedFor(t *testing.T) {
	t.Parallel()
	db := open(t)
	must(t, work.Enqueue(db, &Mail{Text: "past", Job: work.Job{RunAt: time.Now().Add(-time.Hour)}}, &Mail{Text: "future", Job: work.Job{RunAt: time.Now().Add(time.Hour)}}))
	var seen texts
	w := worker(t, db, seen.handle)
	drain(t, w)
	seen.mustBe(t, "past")
	stats, err := work.Stats(t.Context(), db, &Mail{})
	must(t, err)
	if len(stats) != 1 || stats[0].Later != 1 || stats[0].Ready != 0 || stats[0].Queue != "default" {
		t.Errorf("%+v", stats)
	}
	must(t, db.Exec("UPDATE mails SET run_at = now() WHERE text = 'future'").Error)
	drain(t, w)
	seen.mustBe(t, "past", "future")
}

func TestStats_countsByQueue(t *testing.T) {
	t.Parallel()
	db := open(t)
	must(t, work.Enqueue(db, &Mail{Text: "a", Job: work.Job{RunAt: time.Now().Add(-time.Hour)}}, &Mail{Text: "b"}, &Mail{Text: "c", Job: work.Job{Queue: "bulk"}}))
	drain(t, worker(t, db, func(context.Context, *Mail) error { return work.Dead(nil) }, work.Queues("bulk")))
	stats, err := work.Stats(t.Context(), db, &Mail{})
	must(t, err)
	if len(stats) != 2 || stats[0].Queue != "bulk" || stats[0].Dead != 1 || stats[0].Oldest != 0 || stats[1].Ready != 2 || stats[1].Oldest < time.Hour || stats[1].Oldest > 61*time.Minute {
		t.Errorf("%+v", stats)
	}
}

// A job with a far time does not break Stats, nor the search for other jobs.
func TestStats_ofAnyRunAt(t *testing.T) {
	t.Parallel()
	for at, oldest := range map[string]time.Duration{"1700-01-01": math.MaxInt64, "4000-01-01 BC": math.MaxInt64, "-infinity": math.MaxInt64, "infinity": 0} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			enqueue(t, db, "x", "y")
			must(t, db.Exec("UPDATE mails SET run_at = ?, queue = 'odd' WHERE text = 'x'", at).Error)
			stats, err := work.Stats(t.Context(), db, &Mail{})
			must(t, err)
			if len(stats) != 2 || stats[1].Ready != 1 || stats[1].Oldest/time.Hour/1000 != oldest/time.Hour/1000 {
				t.Errorf("%+v", stats)
			}
		})
	}
}

// A job whose RunAt is infinity does not disturb the search for other jobs.
func TestRunAt_never(t *testing.T) {
	t.Parallel()
	logged := pgtest.NewLogger()
	db := openWith(t, pgtest.Plugin(gormlock.New()), pgtest.Config(func(c *gorm.Config) { c.Logger = logged }))
	must(t, work.Enqueue(db, &Mail{Text: "never", Job: work.Job{RunAt: time.Now().Add(time.Hour)}}))
	must(t, db.Exec("UPDATE mails SET run_at = 'infinity'").Error)
	var seen texts
	start(t, worker(t, db, seen.handle))
	must(t, work.Enqueue(db, &Mail{Text: "soon", Job: work.Job{RunAt: time.Now().Add(50 * time.Millisecond)}}))
	eventually(t, "the job", func() bool { return states(t, db)["done"] == 1 })
	seen.mustBe(t, "soon")
	if lines := logged.Lines(); len(lines) > 0 {
		t.Errorf("logged %q", lines)
	}
}

func TestDrain_endsWithItsContext(t *testing.T) {
	t.Parallel()
	db := open(t)
	enqueue(t, db, "a")
	w := worker(t, db, func(context.Context, *Mail) error { return nil })
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if n, err := w.Drain(ctx); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d, %v", n, err)
	}
	if s := states(t, db); s["ready"] != 1 {
		t.Errorf("states %v", s)
	}
}
