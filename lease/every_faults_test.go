package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
)

// Texts that each occur in only one statement of Every.
const (
	beginsARun = "RETURNING s.attempts"
	endsARun   = "ended AS ("
	looksAtRow = "coalesce(problem, '')"
)

// progress is the row of a schedule.
type progress struct {
	settled, tick, retry, done sql.NullTime
	attempts, failures         int
	owner                      string
}

func progressOf(t *testing.T, db *sql.DB, k lockkey.Key) (p progress) {
	t.Helper()
	id, _ := k.Int64()
	if err := db.QueryRowContext(t.Context(), "SELECT settled_at, tick_at, retry_at, done_at, attempts, failures, owner FROM gormlock_schedule WHERE id = $1", id).
		Scan(&p.settled, &p.tick, &p.retry, &p.done, &p.attempts, &p.failures, &p.owner); err != nil {
		t.Fatal(err)
	}
	return p
}

// awaitProgress waits until the row of a schedule is as wanted.
func awaitProgress(t *testing.T, db *sql.DB, k lockkey.Key, what string, is func(progress) bool) progress {
	t.Helper()
	for deadline := time.Now().Add(bound); ; <-time.After(5 * time.Millisecond) {
		p := progressOf(t, db, k)
		if is(p) {
			return p
		}
		if time.Now().After(deadline) {
			t.Fatalf("never: %s, but %+v", what, p)
		}
	}
}

// If the beginning of a run was stored but not confirmed, the run goes on, and counts as the first of its tries.
func TestEvery_anUnconfirmedBeginningIsRun(t *testing.T) {
	t.Parallel()
	for mode, opts := range map[string][]pgtest.Option{"cached": nil, "simple": {pgtest.SimpleProtocol()}} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			proxy, m, db := tapped(t, opts...)
			k, settled := missedTick(t, db)
			r := newRuns(t)
			loseOneAnswer(proxy, beginsARun)
			every(t, m, k, lease.Interval(time.Hour), r.fn, lease.Tries(1))
			if tick := r.next(); tick.Sub(settled) != time.Hour {
				t.Errorf("run is the tick of %s", tick.Sub(settled))
			}
			p := awaitProgress(t, db, k, "it is done", func(p progress) bool { return !p.tick.Valid })
			if !p.done.Valid || p.failures != 0 {
				t.Errorf("after the run: %+v", p)
			}
		})
	}
}

// The outcome of a run counts once, even if the answer is lost and the statement is sent again.
func TestEvery_anUnconfirmedEndCountsOnce(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]error{"a success": nil, "a failure": errors.New("no luck")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, m, db := tapped(t)
			k, _ := missedTick(t, db)
			loseOneAnswer(proxy, endsARun)
			var ran atomic.Int32
			stop := every(t, m, k, lease.Interval(time.Hour), func(context.Context, time.Time) error {
				ran.Add(1)
				return fails
			})
			p := awaitProgress(t, db, k, "its end is written down", func(p progress) bool { return p.done.Valid || p.retry.Valid })
			id, _ := k.Int64()
			if fails != nil { // the statement is sent again before the second run, which is a second later
				<-time.After(500 * time.Millisecond)
			}
			stop()
			again := progressOf(t, db, k)
			if fails == nil && (again.failures != 0 || again.attempts != 0) || fails != nil && (again.failures != 1 || again.attempts != 1) || ran.Load() != 1 {
				t.Errorf("of %d runs of %d: %+v, then %+v", ran.Load(), id, p, again)
			}
		})
	}
}

// A run loses its lease while its outcome is on the way to the server, and the outcome arrives while another process runs the tick. It counts
// neither as a success nor as a failure, and settles no tick.
func TestEvery_aWordThatArrivesLateDoesNotCount(t *testing.T) {
	t.Parallel()
	for name, word := range map[string]error{"a success": nil, "a failure": errors.New("no luck")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, m, db := tapped(t)
			k, _ := missedTick(t, db)
			proxy.OnQuery(func(sql string) wiretap.Action {
				if strings.Contains(sql, endsARun) || isRenewal(sql) {
					return wiretap.HoldRequest
				}
				return wiretap.Pass
			})
			first := newRuns(t)
			every(t, m, k, lease.Interval(time.Hour), func(ctx context.Context, tick time.Time) error {
				first.begin(tick)()
				return word
			}, lease.TTL(300*time.Millisecond))
			tick := first.next()
			second, finish := newRuns(t), make(chan struct{})
			every(t, open(t, db), k, lease.Interval(time.Hour), func(_ context.Context, tick time.Time) error {
				defer second.begin(tick)()
				<-finish
				return nil
			})
			if again := second.next(); !again.Equal(tick) {
				t.Errorf("after the loss came %s", again)
			}
			began := progressOf(t, db, k)
			proxy.OnQuery(nil)
			proxy.Resume()
			<-time.After(300 * time.Millisecond) // the late outcome arrives
			if now := progressOf(t, db, k); now != began {
				t.Errorf("a late word made of %+v: %+v", began, now)
			}
			close(finish)
			p := awaitProgress(t, db, k, "it is done", func(p progress) bool { return !p.tick.Valid })
			if !p.done.Time.Equal(tick) || p.failures != 0 {
				t.Errorf("at the end: %+v", p)
			}
			if len(first.ticks) != 1 || len(second.ticks) != 1 {
				t.Errorf("run %d and %d times", len(first.ticks), len(second.ticks))
			}
		})
	}
}

// A promoted server without the last writes knows an earlier tick: the end of a later one settles nothing there.
func TestEvery_aRowThatLagsBehind(t *testing.T) {
	t.Parallel()
	db := tables(t)
	m := open(t, db)
	k := lockkey.Of("report")
	settled := setBack(t, db, k, 150*time.Minute)
	running, finish := make(chan time.Time, 10), make(chan struct{})
	every(t, m, k, lease.Interval(time.Hour), func(_ context.Context, tick time.Time) error {
		running <- tick
		<-finish
		return nil
	}, lease.Missed(lease.RunAll))
	if tick := <-running; tick.Sub(settled) != time.Hour {
		t.Fatalf("the first is %s", tick.Sub(settled))
	}
	lagging := settled.Add(-2 * time.Hour) // two ticks earlier
	id, _ := k.Int64()
	if _, err := db.ExecContext(t.Context(), "UPDATE gormlock_schedule SET settled_at = $2, tick_at = NULL, attempts = 0, token = token - 1 WHERE id = $1", id, lagging); err != nil {
		t.Fatal(err)
	}
	finish <- struct{}{}
	var again []time.Duration
	for range 4 {
		again = append(again, (<-running).Sub(settled))
		finish <- struct{}{}
	}
	if fmt.Sprint(again) != "[-1h0m0s 0s 1h0m0s 2h0m0s]" {
		t.Errorf("after the promotion came %v", again)
	}
	awaitProgress(t, db, k, "all are done", func(p progress) bool { return !p.tick.Valid && p.done.Time.Sub(settled) == 2*time.Hour })
}

// A deployment ends runs: another process runs the tick at once, and the tick is not given up because of that.
func TestEvery_aRunThatIsCutShortIsNoFailure(t *testing.T) {
	t.Parallel()
	db := tables(t)
	k, settled := missedTick(t, db)
	w := &pgtest.Hearer{}
	for range 3 { // deployments
		began := make(chan time.Time, 1)
		stop := every(t, open(t, db, lease.Observer(w)), k, lease.Interval(time.Hour), func(ctx context.Context, tick time.Time) error {
			began <- tick
			<-ctx.Done()
			return fmt.Errorf("sending: %w", ctx.Err())
		}, lease.Tries(1))
		if tick := <-began; tick.Sub(settled) != time.Hour {
			t.Errorf("run is the tick of %s", tick.Sub(settled))
		}
		stop()
		if p := progressOf(t, db, k); p.attempts != 0 || p.failures != 0 || !p.tick.Valid {
			t.Errorf("after the deployment: %+v", p)
		}
	}
	r := newRuns(t)
	asked := time.Now()
	every(t, open(t, db), k, lease.Interval(time.Hour), r.fn, lease.Tries(1))
	if tick := r.next(); tick.Sub(settled) != time.Hour || time.Since(asked) > 10*time.Second {
		t.Errorf("the tick %s came after %s", tick.Sub(settled), time.Since(asked))
	}
	if kinds := w.Kinds(); slices.Contains(kinds, observe.GivenUp) {
		t.Error(kinds)
	}
}

// A deployment comes while the beginning of a run, or its answer, is on its way. Then no beginning remains that counts as a try: the next process
// runs the tick, and does not give it up.
func TestEvery_cutShortWhileItBegins(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]wiretap.Action{"the request": wiretap.HoldRequest, "the answer": wiretap.HoldAnswer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, m, db := tapped(t)
			k, settled := missedTick(t, db)
			proxy.OnQuery(func(sql string) wiretap.Action {
				if strings.Contains(sql, beginsARun) {
					return held
				}
				return wiretap.Pass
			})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				ended <- m.Every(ctx, k, lease.Interval(time.Hour), func(context.Context, time.Time) error {
					t.Error("it is run after ctx ended")
					return nil
				}, lease.Tries(1))
			}()
			if err := proxy.AwaitHeld(t.Context()); err != nil {
				t.Fatal(err)
			}
			cancel()
			pgtest.Pause(100 * time.Millisecond)
			proxy.OnQuery(nil)
			proxy.Resume()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			r := newRuns(t)
			every(t, open(t, db), k, lease.Interval(time.Hour), r.fn, lease.Tries(1))
			if tick := r.next(); tick.Sub(settled) != time.Hour {
				t.Errorf("run is the tick of %s", tick.Sub(settled))
			}
			if p := awaitProgress(t, db, k, "it is done", func(p progress) bool { return !p.tick.Valid }); !p.done.Valid || p.failures != 0 {
				t.Errorf("after the run: %+v", p)
			}
		})
	}
}

// A transaction that ctx ended is sql.ErrTxDone at its commit, which does not say that ctx ended.
func TestEvery_aRunThatIsCutShortMayReturnAnyError(t *testing.T) {
	t.Parallel()
	db := tables(t)
	k, _ := missedTick(t, db)
	began := make(chan struct{})
	var said error
	stop := every(t, open(t, db), k, lease.Interval(time.Hour), func(ctx context.Context, _ time.Time) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		close(began)
		<-ctx.Done()
		for said = tx.Commit(); !errors.Is(said, sql.ErrTxDone); said = tx.Commit() { // database/sql rolls it back soon
			pgtest.Pause(time.Millisecond)
		}
		return said
	}, lease.Tries(1))
	<-began
	stop()
	if p := progressOf(t, db, k); p.attempts != 0 || p.failures != 0 || !p.tick.Valid {
		t.Errorf("it returned %v: %+v", said, p)
	}
}

// Timeouts that a role has for its statements end neither a schedule nor a campaign: the statements are sent again.
func TestEvery_outlastsTheTimeoutsOfItsRole(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"statement_timeout", "lock_timeout"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.SchemaDSN(t)
			direct := tables(t, pgtest.Through(dsn))
			m := open(t, pgtest.SQLDB(t, pgtest.Through(dsn), pgtest.Param(setting, "300ms")))
			r := newRuns(t)
			every(t, m, lockkey.Of("report"), lease.Interval(100*time.Millisecond), r.fn)
			r.next()
			tx, err := direct.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(t.Context(), "LOCK TABLE gormlock_schedule, gormlock_lease"); err != nil {
				t.Fatal(err)
			}
			led := make(chan error, 1)
			go func() {
				led <- m.Lead(t.Context(), lockkey.Of("importer"), time.Minute, func(context.Context) error { return nil })
			}()
			pgtest.Pause(time.Second)
			if err := tx.Rollback(); err != nil {
				t.Error(err)
			}
			if err := <-led; err != nil {
				t.Errorf("Lead: %v", err)
			}
			for len(r.came) > 0 {
				<-r.came
			}
			r.next()
		})
	}
}

// If the role cannot write the row, Every fails at once, and not only when the first tick comes at night.
func TestEvery_saysAtOnceThatItMayNotWrite(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	db := tables(t, pgtest.Through(dsn))
	if _, err := db.ExecContext(t.Context(), `DO $$ BEGIN CREATE ROLE gormlock_test_reader; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;
	DO $$ BEGIN
		EXECUTE format('GRANT USAGE ON SCHEMA %I TO gormlock_test_reader', current_schema());
		GRANT SELECT, INSERT, UPDATE ON gormlock_lease, gormlock_fence TO gormlock_test_reader;
		GRANT SELECT, INSERT ON gormlock_schedule TO gormlock_test_reader;
	END $$`); err != nil {
		t.Fatal(err)
	}
	k := lockkey.Of("report")
	every(t, open(t, db), k, lease.Interval(time.Hour), newRuns(t).fn)
	id, _ := k.Int64()
	for next := (sql.NullTime{}); !next.Valid; { // the row already says for which tick it waits
		if err := db.QueryRowContext(t.Context(), "SELECT max(next_at) FROM gormlock_schedule WHERE id = $1", id).Scan(&next); err != nil {
			t.Fatal(err)
		}
	}
	m := open(t, pgtest.SQLDB(t, pgtest.Through(dsn), pgtest.Param("role", "gormlock_test_reader")))
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	if err := m.Every(ctx, k, lease.Interval(time.Hour), newRuns(t).fn); !errors.Is(err, lease.ErrTable) || !strings.Contains(fmt.Sprint(err), "gormlock_schedule") {
		t.Errorf("got %v", err)
	}
}

// Tries and their pauses belong to the tick, whichever processes run it.
func TestEvery_triesCountAcrossProcesses(t *testing.T) {
	t.Parallel()
	db := tables(t)
	k, _ := missedTick(t, db)
	w := &pgtest.Hearer{}
	var ran atomic.Int32
	for try := 1; try <= 3; try++ {
		before := progressOf(t, db, k)
		began := make(chan time.Duration, 10)
		stop := every(t, open(t, db, lease.Observer(w)), k, lease.Interval(time.Hour), func(ctx context.Context, _ time.Time) error {
			ran.Add(1)
			var early time.Duration
			var now time.Time
			if err := db.QueryRowContext(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
				t.Error(err)
			}
			if before.retry.Valid {
				early = before.retry.Time.Sub(now)
			}
			began <- early
			return errors.New("no luck")
		})
		if early := <-began; early > 0 {
			t.Errorf("try %d began %s before its pause was over", try, early)
		}
		p := awaitProgress(t, db, k, "the failure is written down", func(p progress) bool { return p.failures == try })
		if try < 3 && (p.attempts != try || !p.retry.Valid) || try == 3 && p.tick.Valid {
			t.Errorf("after try %d: %+v", try, p)
		}
		stop()
	}
	givenUp := slices.DeleteFunc(w.Kinds(), func(k observe.Kind) bool { return k != observe.GivenUp })
	if ran.Load() != 3 || len(givenUp) != 1 {
		t.Errorf("%d runs, then %v", ran.Load(), w.Kinds())
	}
}

// If two managers of one process run a schedule, and one of them twice, each tick still runs once.
func TestEvery_twiceInOneProcess(t *testing.T) {
	t.Parallel()
	db := tables(t)
	k := lockkey.Of("report")
	a, b := open(t, db), open(t, db)
	r := newRuns(t)
	const step = 50 * time.Millisecond
	for _, m := range []*lease.Manager{a, a, b} {
		every(t, m, k, lease.Interval(step), func(_ context.Context, tick time.Time) error {
			defer r.begin(tick)()
			<-time.After(10 * time.Millisecond)
			return nil
		}, lease.Missed(lease.RunAll))
	}
	r.inStep(20, r.next(), step)
	err := a.Do(t.Context(), lockkey.Of("other"), time.Minute, func(ctx context.Context) error {
		return a.Every(ctx, lockkey.Of("other"), lease.Interval(time.Millisecond), func(context.Context, time.Time) error { panic("it runs") })
	})
	if !errors.Is(err, lease.ErrReentrant) {
		t.Errorf("under a lease of its own key it waits for itself: %v", err)
	}
}

// The isolation level that a role prefers changes nothing.
func TestEvery_serializable(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	k := lockkey.Of("report")
	r := newRuns(t)
	const step = 30 * time.Millisecond
	for _, level := range []string{"read committed", "repeatable read", "serializable", "serializable"} {
		m := open(t, tables(t, pgtest.Through(dsn), pgtest.Param("default_transaction_isolation", level)))
		every(t, m, k, lease.Interval(step), r.fn, lease.Missed(lease.RunAll))
	}
	r.inStep(30, r.next(), step)
}

// If a connection goes silent, a schedule or a campaign is only held up for seconds, although its ctx has no end.
func TestEvery_aSilentConnection(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"the look": looksAtRow, "the lease": "gormlock_lease", "the beginning": beginsARun, "the end": endsARun} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, m, db := tapped(t)
			k, settled := missedTick(t, db)
			silence(proxy, text)
			r := newRuns(t)
			every(t, m, k, lease.Interval(time.Hour), r.fn)
			if tick := r.next(); tick.Sub(settled) != time.Hour {
				t.Errorf("run is the tick of %s", tick.Sub(settled))
			}
			awaitProgress(t, db, k, "it is done", func(p progress) bool { return !p.tick.Valid })
			if len(r.came) > 0 {
				t.Errorf("the tick %s came as well", <-r.came)
			}
		})
	}
	t.Run("a campaign", func(t *testing.T) {
		t.Parallel()
		proxy, m, _ := tapped(t)
		silence(proxy, "gormlock_lease")
		leads := make(chan struct{})
		go func() {
			_ = m.Lead(t.Context(), lockkey.Of("importer"), time.Second, func(context.Context) error {
				close(leads)
				return nil
			})
		}()
		pgtest.Await(t, "a leader", leads)
	})
}

// silence holds the first statement with this text for ever, on its connection.
func silence(proxy *wiretap.Proxy, text string) { onFirst(proxy, text, wiretap.HoldRequest) }

// broken is a schedule that fails after its first tick.
type broken struct {
	first time.Time
	then  func(t time.Time) time.Time
}

func (b *broken) Next(t time.Time) time.Time {
	if t.Before(b.first) {
		return b.first
	}
	return b.then(t)
}

// If a schedule fails, Every returns an error, and releases the lease.
func TestEvery_aScheduleThatGoesWrong(t *testing.T) {
	t.Parallel()
	db := tables(t)
	m := open(t, db)
	for name, then := range map[string]func(time.Time) time.Time{
		"it ends":        func(time.Time) time.Time { return time.Time{} },
		"it stands":      func(t time.Time) time.Time { return t },
		"it goes back":   func(t time.Time) time.Time { return t.Add(-time.Hour) },
		"it panics":      func(time.Time) time.Time { panic("no such day") },
		"it ends for us": func(time.Time) time.Time { return time.Time{}.In(time.FixedZone("CET", 3600)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := lockkey.Of(name)
			settled := setBack(t, db, k, time.Minute)
			ran := 0
			err := func() (err error) {
				defer func() {
					if cause := recover(); cause != nil {
						err = fmt.Errorf("%w: %v", lease.ErrOption, cause)
					}
				}()
				return m.Every(t.Context(), k, &broken{settled.Add(time.Second), then}, func(context.Context, time.Time) error {
					ran++
					return nil
				})
			}()
			if !errors.Is(err, lease.ErrOption) {
				t.Errorf("%d runs, then %v", ran, err)
			}
			release(t, acquire(t, m, k, time.Minute))
		})
	}
}

// If somebody deletes the row during a run, the schedule starts anew, and no past tick is run.
func TestEvery_aRowThatIsDeleted(t *testing.T) {
	t.Parallel()
	db := tables(t)
	k, _ := missedTick(t, db)
	running, finish := make(chan struct{}), make(chan struct{})
	every(t, open(t, db), k, lease.Interval(time.Hour), func(context.Context, time.Time) error {
		close(running)
		<-finish
		return nil
	})
	<-running
	id, _ := k.Int64()
	if _, err := db.ExecContext(t.Context(), "DELETE FROM gormlock_schedule WHERE id = $1", id); err != nil {
		t.Fatal(err)
	}
	close(finish)
	for n, deadline := 0, time.Now().Add(bound); n == 0; {
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM gormlock_schedule WHERE id = $1", id).Scan(&n); err != nil || time.Now().After(deadline) {
			t.Fatal("no row anew", err)
		}
	}
	if p := progressOf(t, db, k); p.tick.Valid || p.done.Valid || time.Since(p.settled.Time) > time.Minute {
		t.Errorf("it is %+v", p)
	}
}

// A candidate that resigns during IsLeader does not lead afterwards.
func TestElector_resignsWhileItAsks(t *testing.T) {
	t.Parallel()
	proxy, m, db := tapped(t)
	k := lockkey.Of("jobs")
	c := lease.Elector(m, k, time.Minute)
	silence(proxy, "gormlock_lease")
	asked := make(chan error, 1)
	go func() { asked <- c.IsLeader(context.Background()) }()
	if err := proxy.AwaitHeld(t.Context()); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.Resign(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an answer is on its way, and Resign says %v", err)
	}
	go func() {
		<-time.After(100 * time.Millisecond)
		proxy.Resume()
	}()
	if err := c.Resign(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-asked; err == nil {
		t.Error("it leads after it resigned")
	}
	release(t, acquire(t, open(t, db), k, time.Minute))
}

// textless is an error that panics if it is a nil pointer.
type textless struct{ text string }

func (e *textless) Error() string { return e.text }

// If the text of an error panics, that is a failure like any other, and the schedule goes on.
func TestEvery_anErrorWithoutATextIsAFailure(t *testing.T) {
	t.Parallel()
	db := tables(t)
	k, _ := missedTick(t, db)
	var first atomic.Bool
	again := make(chan struct{})
	every(t, open(t, db), k, lease.Interval(time.Hour), func(ctx context.Context, _ time.Time) error {
		if first.CompareAndSwap(false, true) {
			var none *textless
			return none
		}
		select {
		case <-again:
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	awaitProgress(t, db, k, "it has failed", func(p progress) bool { return p.failures == 1 })
	var problem string
	id, _ := k.Int64()
	if err := db.QueryRowContext(t.Context(), "SELECT problem FROM gormlock_schedule WHERE id = $1", id).Scan(&problem); err != nil || !strings.Contains(problem, "textless panicked") {
		t.Errorf("%q, %v", problem, err)
	}
	close(again)
	awaitProgress(t, db, k, "it is done", func(p progress) bool { return p.done.Valid && p.failures == 0 })
}

// idle_session_timeout ends the sessions of a pool between ticks and between calls. Both continue with other sessions.
func TestIdleSessionTimeout(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	tables(t, pgtest.Through(dsn))
	pool := pgtest.SQLDB(t, pgtest.Through(dsn), pgtest.Param("idle_session_timeout", "100"))
	const each = 5 // connections
	pool.SetMaxIdleConns(each)
	const pause = 400 * time.Millisecond // after a second pgx checks whether a connection still works
	m := open(t, pool)
	r := newRuns(t)
	every(t, m, lockkey.Of("report"), lease.Interval(pause), r.fn)
	for range 3 {
		r.next()
		var conns []*sql.Conn
		for range each {
			conn, err := pool.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
		}
		for _, conn := range conns {
			_ = conn.Close()
		}
		<-time.After(pause)
		l, err := m.TryAcquire(t.Context(), lockkey.Of("other"), bound)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
