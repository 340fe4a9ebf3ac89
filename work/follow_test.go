package work_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/work"
)

// Order is a job that can be deleted softly.
type Order struct {
	work.Job
	AccountID *int64
	Text      string
	DeletedAt gorm.DeletedAt
}

// orders returns a schema of the test's own with jobs of one account, in this order, and a proxy that sees what is sent to the server.
func orders(t testing.TB, texts ...string) (*gorm.DB, *wiretap.Proxy) {
	t.Helper()
	proxy, through := pgtest.Tap(t, pgtest.SchemaDSN(t))
	db := pgtest.Open(t, pgtest.Through(through), pgtest.Plugin(gormlock.New()))
	must(t, work.Migrate(db, &Order{}, work.OnePer("account_id")))
	account := int64(1)
	for _, text := range texts {
		must(t, work.Enqueue(db, &Order{AccountID: &account, Text: text, Job: work.Job{Queue: "a"}}))
	}
	return db, proxy
}

// ordersOf returns a worker for all accounts that works on one job of each at a time.
func ordersOf(t testing.TB, db *gorm.DB, handle func(context.Context, *Order) error, opts ...work.Option) *work.Worker[Order] {
	t.Helper()
	w, err := work.New(db, handle, append(opts, work.OnePer("account_id"))...)
	must(t, err)
	return w
}

// lists counts how often the values were listed.
func lists(proxy *wiretap.Proxy) (n int) {
	for _, text := range proxy.Statements() {
		if strings.Contains(text, "WITH RECURSIVE") {
			n++
		}
	}
	return n
}

// The statement that completes a job returns the next one, so a busy worker rarely lists the values.
func TestOnePer_knowsWhatFollows(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]func(db *gorm.DB, o *Order) error{
		"done": func(*gorm.DB, *Order) error { return nil },
		"dead": func(*gorm.DB, *Order) error { return work.Dead(nil) },
		"Complete": func(db *gorm.DB, o *Order) error {
			return db.Transaction(func(tx *gorm.DB) error { return work.Complete(tx, o) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := strings.Split(strings.Repeat("x", 50), "")
			db, proxy := orders(t, want...)
			var seen texts
			w := ordersOf(t, db, func(_ context.Context, o *Order) error {
				seen.add(o.Text)
				return handle(db, o)
			})
			proxy.Reset()
			ctx, stop := context.WithTimeout(t.Context(), bound)
			defer stop()
			if _, err := w.Drain(ctx); err != nil {
				t.Fatal(err)
			}
			seen.mustBe(t, want...)
			if n := lists(proxy); n > 10 {
				t.Errorf("%d lists for %d jobs", n, len(want))
			}
		})
	}
}

// The job that follows cannot be claimed. It waits, with all later jobs, and is found later. Softly deleted jobs are skipped.
func TestOnePer_whatFollowsCannotBeClaimed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		begin, end string // what is done to the second job
		want       []string
	}{
		"of another queue":   {"UPDATE orders SET queue = 'b' WHERE text = 'second'", "UPDATE orders SET queue = 'a'", []string{"first", "second", "third"}},
		"RunAt is to come":   {"UPDATE orders SET run_at = now() + interval '1 hour' WHERE text = 'second'", "UPDATE orders SET run_at = now()", []string{"first", "second", "third"}},
		"later":              {"UPDATE orders SET state = 'later', run_at = now() + interval '1 hour' WHERE text = 'second'", "UPDATE orders SET run_at = now()", []string{"first", "second", "third"}},
		"deleted softly":     {"UPDATE orders SET deleted_at = now() WHERE text = 'second'", "", []string{"first", "third"}},
		"deleted at the end": {"UPDATE orders SET queue = 'b' WHERE text = 'second'", "UPDATE orders SET deleted_at = now() WHERE text = 'second'", []string{"first", "third"}},
		"dead at the end":    {"UPDATE orders SET queue = 'b' WHERE text = 'second'", "UPDATE orders SET state = 'dead' WHERE text = 'second'", []string{"first", "third"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, _ := orders(t, "first", "second", "third")
			must(t, db.Exec(c.begin).Error)
			var seen texts
			run(t, ordersOf(t, db, func(_ context.Context, o *Order) error {
				seen.add(o.Text)
				return nil
			}, work.Queues("a"), work.Poll(10*time.Millisecond)))
			eventually(t, "the first", func() bool { return isDone(t, db, "first") })
			if c.end != "" {
				<-time.After(100 * time.Millisecond) // for a worker that would wrongly go on
				seen.mustBe(t, "first")
				must(t, db.Exec(c.end).Error)
			}
			eventually(t, "the third", func() bool { return isDone(t, db, "third") })
			seen.mustBe(t, c.want...)
		})
	}
}

func isDone(t testing.TB, db *gorm.DB, text string) bool {
	t.Helper()
	var state string
	must(t, db.Raw("SELECT state FROM orders WHERE text = ?", text).Scan(&state).Error)
	return state == "done"
}

// run runs w until the end of the test, or until end is called. When no further job is claimed, end calls meanwhile.
func run[T any](t testing.TB, w *work.Worker[T]) (end func(meanwhile func())) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	var once sync.Once
	end = func(meanwhile func()) {
		once.Do(func() {
			stop()
			meanwhile()
			if err := <-over; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { end(func() {}) })
	return end
}

// Somebody has locked the job that follows when it is to be claimed.
func TestOnePer_whatFollowsIsLocked(t *testing.T) {
	t.Parallel()
	db, _ := orders(t, "first", "second", "third")
	tx := db.Begin()
	must(t, tx.Exec("SELECT FROM orders WHERE text = 'second' FOR UPDATE").Error)
	var seen texts
	run(t, ordersOf(t, db, func(_ context.Context, o *Order) error {
		seen.add(o.Text)
		return nil
	}, work.Poll(10*time.Millisecond)))
	eventually(t, "the first", func() bool { return isDone(t, db, "first") })
	<-time.After(100 * time.Millisecond) // for a worker that would wrongly go on
	seen.mustBe(t, "first")
	must(t, tx.Commit().Error)
	eventually(t, "the third", func() bool { return isDone(t, db, "third") })
	seen.mustBe(t, "first", "second", "third")
}

// The worker that knows which job follows ends, and no other worker was told: another one finds the job within five seconds.
func TestOnePer_whoKnowsWhatFollowsEnds(t *testing.T) {
	t.Parallel()
	db, proxy := orders(t, "first", "second")
	begun, goOn := make(chan struct{}), make(chan struct{})
	end := run(t, ordersOf(t, db, func(_ context.Context, o *Order) error {
		if o.Text != "first" {
			t.Errorf("%s has begun", o.Text)
		}
		close(begun)
		<-goOn
		return nil
	}, work.Poll(time.Minute)))
	pgtest.Await(t, "the first", begun)
	proxy.Reset()
	var seen texts
	run(t, ordersOf(t, db, func(_ context.Context, o *Order) error {
		seen.add(o.Text)
		return nil
	}, work.Poll(time.Minute)))
	eventually(t, "the other looks, twice as it begins", func() bool { return lists(proxy) >= 2 })
	end(func() { close(goOn) })
	since := time.Now()
	eventually(t, "the second", func() bool { return isDone(t, db, "second") })
	seen.mustBe(t, "second")
	if took := time.Since(since); took > 8*time.Second { // five, and some for a slow machine
		t.Errorf("it was found after %s", took)
	}
}

// The statement that completes a job is executed, but its answer, with the ID of the job that follows, is lost.
func TestOnePer_theAnswerThatNamesWhatFollowsIsLost(t *testing.T) {
	t.Parallel()
	want := []string{"1", "2", "3", "4", "5"}
	db, proxy := orders(t, want...)
	var lost atomic.Bool
	proxy.OnQuery(func(text string) wiretap.Action {
		if strings.Contains(text, `SET "state" = 'done'`) && lost.CompareAndSwap(false, true) {
			return wiretap.CutAnswer
		}
		return wiretap.Pass
	})
	var seen texts
	run(t, ordersOf(t, db, func(_ context.Context, o *Order) error {
		seen.add(o.Text)
		return nil
	}))
	eventually(t, "the last", func() bool { return isDone(t, db, "5") })
	seen.mustBe(t, want...)
	if !lost.Load() {
		t.Error("no answer was lost")
	}
}
