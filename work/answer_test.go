package work_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
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

// slowOnce returns a handler that once pauses, when at least so many jobs of its process wait behind its own. Right before the pause it calls do.
func slowOnce(t *testing.T, beside *gorm.DB, least int, do func()) func(ctx context.Context, m *Mail) error {
	t.Helper()
	ran, paused := 0, false
	return func(_ context.Context, m *Mail) error {
		if ran++; paused || ran%5 != 0 {
			return nil
		}
		var waiting int64
		must(t, beside.Model(&Mail{}).Where("state = 'running' AND id > ?", m.ID).Count(&waiting).Error)
		if int(waiting) < least {
			return nil
		}
		paused = true
		do()
		<-time.After(500 * time.Millisecond)
		return nil
	}
}

// A job does not begin if the answer, whether this process still has it, comes after the lease: another process may have it by then.
func TestUnproven_answerAfterTheLease(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]int32{"together": 0, "alone": 5} { // so many answers to the first question are lost
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, db, beside := cuttable(t)
			must(t, beside.Exec("INSERT INTO mails (text) SELECT 'x' FROM generate_series(1, 300)").Error)
			const lease = 3 * time.Second
			var armed atomic.Bool
			var asked atomic.Int32
			stalled := make(chan struct{})
			proxy.OnQuery(func(sql string) wiretap.Action {
				if !strings.Contains(sql, question) || !armed.Load() {
					return wiretap.Pass
				}
				if asked.Add(1) <= lost {
					return wiretap.CutAnswer
				}
				if armed.CompareAndSwap(true, false) {
					proxy.StallAnswers()
					close(stalled)
				}
				return wiretap.Pass
			})
			var running sync.Map
			slow := slowOnce(t, beside, 3, func() { armed.Store(true) })
			start(t, worker(t, db, func(ctx context.Context, m *Mail) error {
				if _, is := running.Load(m.ID); is {
					t.Errorf("job %d begins, and another process runs it: %v", m.ID, ctx.Err())
				}
				return slow(ctx, m)
			}, work.Workers(1), work.Lease(lease)))
			<-stalled
			<-time.After(lease + 200*time.Millisecond)
			release := make(chan struct{})
			start(t, worker(t, beside, func(_ context.Context, m *Mail) error {
				running.Store(m.ID, true)
				<-release
				running.Delete(m.ID)
				return nil
			}, work.Workers(400), work.Lease(lease)))
			eventually(t, "the other process has the jobs", func() bool { return states(t, beside)["ready"] == 0 })
			proxy.Resume()
			<-time.After(500 * time.Millisecond)
			close(release)
			eventually(t, "all is done", func() bool { return states(t, beside)["done"] == 300 })
		})
	}
}

// If one question is not answered, the other jobs that have waited are released, and when the run ends, so is the one that was asked for.
func TestUnproven_questionIsNotAnswered(t *testing.T) {
	t.Parallel()
	proxy, db, beside := cuttable(t)
	must(t, beside.Exec("INSERT INTO mails (text) SELECT 'x' FROM generate_series(1, 300)").Error)
	var armed atomic.Bool
	proxy.OnQuery(func(sql string) wiretap.Action {
		if strings.Contains(sql, question) && armed.Load() {
			return wiretap.HoldAnswer
		}
		return wiretap.Pass
	})
	end := start(t, worker(t, db, slowOnce(t, beside, 3, func() { armed.Store(true) }), work.Workers(1), work.Lease(time.Minute), work.Grace(20*time.Second)))
	eventually(t, "a question is not answered", armed.Load)
	drain(t, worker(t, beside, func(context.Context, *Mail) error { return nil }))
	eventually(t, "another process gets the jobs", func() bool {
		drain(t, worker(t, beside, func(context.Context, *Mail) error { return nil }))
		return states(t, beside)["done"] >= 299
	})
	began := time.Now()
	must(t, end())
	if took, now := time.Since(began), states(t, beside); took > 10*time.Second || now["running"] > 0 {
		t.Errorf("the run ended after %s with %v", took, now)
	}
}

// Peeked is a job whose AfterFind is code of the program.
type Peeked struct {
	work.Job
	Text string
}

var peeks sync.Map

func (p *Peeked) AfterFind(tx *gorm.DB) error {
	if fail, is := peeks.Load(p.Text); is {
		return fail.(func(*gorm.DB) error)(tx) //nolint:forcetypeassert // stored by the test
	}
	return nil
}

// If code of the model fails for one row, only that job fails, and its attempts are used up, whatever the error looks like.
func TestUnread_modelFailsLikeTheServer(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()), pgtest.Config(func(c *gorm.Config) { c.Logger = pgtest.NewLogger() }))
	must(t, work.Migrate(db, &Peeked{}))
	for name, fail := range map[string]func(tx *gorm.DB) error{
		"network":  func(*gorm.DB) error { return &net.OpError{Op: "dial", Err: errors.New("refused")} },
		"deadline": func(*gorm.DB) error { return context.DeadlineExceeded },
		"canceled": func(*gorm.DB) error { return context.Canceled },
		"statement": func(tx *gorm.DB) error {
			return tx.Session(&gorm.Session{NewDB: true}).Exec("SELECT nope FROM peekeds").Error
		},
		"Goexit": func(*gorm.DB) error { runtime.Goexit(); return nil },
		"panic":  func(*gorm.DB) error { panic("broken") },
	} {
		must(t, db.Exec("DELETE FROM peekeds").Error)
		bad := "bad " + name
		peeks.Store(bad, fail)
		must(t, db.Exec(fmt.Sprintf("INSERT INTO peekeds (text, max_attempts) VALUES ('a', 2), ('%s', 2), ('c', 2)", bad)).Error)
		w, err := work.New(db, func(context.Context, *Peeked) error { return nil }, work.Backoff(func(int) time.Duration { return 0 }))
		must(t, err)
		ctx, stop := context.WithTimeout(context.Background(), bound)
		if _, err = w.Drain(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		stop()
		var all []string
		must(t, db.Raw("SELECT state || ' ' || attempts FROM peekeds ORDER BY id").Scan(&all).Error)
		if got := strings.Join(all, ", "); got != "done 1, dead 2, done 1" {
			t.Errorf("%s: %s", name, got)
		}
	}
}
