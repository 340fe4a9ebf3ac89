package work_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/work"
)

// unheardModes are the two ways in which pgx tells of an answer that is lost.
var unheardModes = map[string]string{"cached": "cache_statement", "simple": "simple_protocol"}

// cut is a database, and what makes its line lose the answer of the next statement that has the text.
func cut(t *testing.T, mode, text string, opts ...pgtest.Option) (db *gorm.DB, lose func()) {
	t.Helper()
	proxy, dsn := pgtest.Tap(t, pgtest.SchemaDSN(t))
	db = pgtest.Open(t, append(opts, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()), pgtest.Param("default_query_exec_mode", mode),
		pgtest.Config(func(c *gorm.Config) { c.Logger = pgtest.NewLogger() }))...)
	must(t, work.Migrate(db, &Mail{}))
	return db, loses(proxy, text)
}

// loses returns what makes a line lose the answer of the next statement that has the text.
func loses(proxy *wiretap.Proxy, text string) (lose func()) {
	var loses atomic.Bool
	proxy.OnQuery(func(sql string) wiretap.Action {
		if strings.Contains(sql, text) && loses.CompareAndSwap(true, false) {
			return wiretap.CutAnswer
		}
		return wiretap.Pass
	})
	return func() { loses.Store(true) }
}

// A worker runs the jobs of a claim whose answer is lost, once.
func TestClaim_unheard(t *testing.T) {
	t.Parallel()
	for name, mode := range unheardModes {
		for how, work := range map[string]func(w *work.Worker[Mail], ctx context.Context) error{
			"Run":   func(w *work.Worker[Mail], ctx context.Context) error { return w.Run(ctx) },
			"Drain": func(w *work.Worker[Mail], ctx context.Context) error { _, err := w.Drain(ctx); return err },
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				db, lose := cut(t, mode, `"attempts" + 1`)
				lose()
				runsUnheard(t, db, work)
			})
		}
	}
}

// A pooler answers in the place of a server that it has lost, with an error that has a code.
func TestClaim_unheardBehindAPooler(t *testing.T) {
	t.Parallel()
	for pooler, before := range pgtest.Poolers {
		for _, mode := range []string{"exec", "simple_protocol"} {
			t.Run(pooler+"/"+mode, func(t *testing.T) {
				t.Parallel()
				dsn := pgtest.Database(t)
				must(t, work.Migrate(pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New())), &Mail{}))
				proxy, tapped := pgtest.Tap(t, dsn)
				lose := loses(proxy, `"attempts" + 1`)
				db := pgtest.Open(t, pgtest.Through(before(t, tapped)), pgtest.Plugin(gormlock.New()), pgtest.Param("default_query_exec_mode", mode),
					pgtest.Config(func(c *gorm.Config) { c.Logger = pgtest.NewLogger() }))
				lose()
				runsUnheard(t, db, func(w *work.Worker[Mail], ctx context.Context) error { return w.Run(ctx) })
			})
		}
	}
}

// A wrapper of the driver hides its mode.
func TestClaim_unheardThroughAWrapper(t *testing.T) {
	t.Parallel()
	for name, mode := range unheardModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, lose := cut(t, mode, `"attempts" + 1`, pgtest.Wrapped())
			lose()
			runsUnheard(t, db, func(w *work.Worker[Mail], ctx context.Context) error { return w.Run(ctx) })
		})
	}
}

func runsUnheard(t *testing.T, db *gorm.DB, run func(w *work.Worker[Mail], ctx context.Context) error) {
	t.Helper()
	must(t, work.Enqueue(db, &Mail{Text: "a", Job: work.Job{MaxAttempts: 1}}))
	ran := make(chan struct{}, 5)
	ctx, stop := context.WithTimeout(t.Context(), bound)
	defer stop()
	w := worker(t, db, func(context.Context, *Mail) error { ran <- struct{}{}; return nil }, work.Lease(time.Hour), work.Poll(10*time.Millisecond))
	over := make(chan error, 1)
	go func() { over <- run(w, ctx) }()
	pgtest.Await(t, "the job runs", ran)
	stop()
	if err := <-over; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if len(ran) > 0 {
		t.Errorf("it ran %d times more", len(ran))
	}
}

// What changed rows and is not heard of is an error, which is not that nothing was done.
func TestComplete_unheard(t *testing.T) {
	t.Parallel()
	for name, mode := range unheardModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, lose := cut(t, mode, `"state"=`, pgtest.SkipDefaultTransaction())
			enqueue(t, db, "a")
			completed := make(chan error, 1)
			start(t, worker(t, db, func(ctx context.Context, m *Mail) error {
				lose()
				err := work.Complete(db.WithContext(ctx), m)
				completed <- err
				return err
			}))
			if err := <-completed; err == nil || errors.Is(err, gormlock.ErrStale) || strings.Contains(err.Error(), "bad connection") {
				t.Error(err)
			}
		})
	}
}

func TestRequeue_unheard(t *testing.T) {
	t.Parallel()
	for name, mode := range unheardModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, lose := cut(t, mode, "'ready'")
			must(t, db.Exec("INSERT INTO mails (state) VALUES ('dead')").Error)
			lose()
			if n, err := work.Requeue(t.Context(), db, &Mail{}, 1); err == nil || strings.Contains(err.Error(), "bad connection") {
				t.Error(n, err)
			}
		})
	}
}
