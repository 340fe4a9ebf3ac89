package lease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
)

// runs are the runs of a schedule, in the order in which they began.
type runs struct {
	mu    sync.Mutex
	ticks []time.Time
	on    int
	t     *testing.T
	came  chan time.Time
}

func newRuns(t *testing.T) *runs { return &runs{t: t, came: make(chan time.Time, 1000)} }

// begin counts a run, and returns a function that ends it. Two runs at a time are an error.
func (r *runs) begin(tick time.Time) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ticks = append(r.ticks, tick)
	if r.on++; r.on > 1 {
		r.t.Errorf("two runs at a time, one of %s", tick)
	}
	r.came <- tick
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.on--
	}
}

func (r *runs) fn(_ context.Context, tick time.Time) error {
	r.begin(tick)()
	return nil
}

// next waits for a run.
func (r *runs) next() time.Time {
	r.t.Helper()
	select {
	case tick := <-r.came:
		return tick
	case <-time.After(bound):
		r.t.Fatal("no run comes")
		return time.Time{}
	}
}

// inStep waits for n more runs. The tick of each must follow the last one by step.
func (r *runs) inStep(n int, last time.Time, step time.Duration) {
	r.t.Helper()
	for range n {
		tick := r.next()
		if tick.Sub(last) != step {
			r.t.Fatalf("after %s came %s", last, tick)
		}
		last = tick
	}
}

// every runs a schedule until the end of the test, or until stop is called.
func every(t *testing.T, m *lease.Manager, k lockkey.Key, s lease.Schedule, fn func(context.Context, time.Time) error, opts ...lease.EveryOption) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Every(ctx, k, s, fn, opts...) }()
	var once sync.Once
	end := func(by ...error) {
		once.Do(func() {
			cancel()
			err := <-done
			if !slices.ContainsFunc(by, func(target error) bool { return errors.Is(err, target) }) {
				t.Errorf("Every: %v", err)
			}
		})
	}
	t.Cleanup(func() { end(context.Canceled, lease.ErrClosed) })
	return func() { end(context.Canceled) }
}

// setBack makes the schedule look as if no process had run it for a while.
func setBack(t *testing.T, db *sql.DB, k lockkey.Key, by time.Duration) (settled time.Time) {
	t.Helper()
	id, _ := k.Int64()
	err := db.QueryRowContext(t.Context(), `INSERT INTO gormlock_schedule (space, id, name, settled_at, attempts, owner, token, failures)
		VALUES (1, $1, $2, now() - $3::bigint * interval '1 microsecond', 0, '', 0, 0)
		ON CONFLICT (space, id) DO UPDATE SET settled_at = excluded.settled_at RETURNING settled_at`, id, k.String(), by.Microseconds()).Scan(&settled)
	if err != nil {
		t.Fatal(err)
	}
	return settled.UTC()
}

// missedTick makes an hourly schedule miss one tick, an hour after settled.
func missedTick(t *testing.T, db *sql.DB) (k lockkey.Key, settled time.Time) {
	t.Helper()
	k = lockkey.Of("report")
	return k, setBack(t, db, k, 90*time.Minute)
}

func TestEvery_eachTickOnceAndInOrder(t *testing.T) {
	t.Parallel()
	db := tables(t)
	k := lockkey.Of("report")
	r := newRuns(t)
	const step = 50 * time.Millisecond
	for range 3 {
		every(t, open(t, db), k, lease.Interval(step), r.fn, lease.Missed(lease.RunAll))
	}
	last := r.next()
	if last.Location() != time.UTC {
		t.Errorf("the tick is %s", last)
	}
	r.inStep(40, last, step)
}

// Only the clock of the database counts: no tick is run before its time there.
func TestEvery_byTheClockOfTheDatabase(t *testing.T) {
	t.Parallel()
	db := tables(t)
	for name, skew := range map[string]time.Duration{"two seconds fast": 2 * time.Second, "two seconds slow": -2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			early := make(chan time.Duration, 100)
			every(t, openUnder(pgtest.Skewed(t.Context(), skew), t, db), lockkey.Of(name), lease.Interval(100*time.Millisecond), func(ctx context.Context, tick time.Time) error {
				var now time.Time
				if err := db.QueryRowContext(ctx, "SELECT clock_timestamp()").Scan(&now); err != nil {
					return err
				}
				early <- tick.Sub(now)
				return nil
			})
			for range 10 {
				if d := <-early; d > 0 || d < -bound {
					t.Errorf("a tick was run %s before its time", d)
				}
			}
		})
	}
}

func TestEvery_missedTicks(t *testing.T) {
	t.Parallel()
	db := tables(t)
	const step = 10*time.Minute + time.Second
	for name, c := range map[string]struct {
		opts []lease.EveryOption
		runs []int // which ticks after the last settled one, of the five that were missed
	}{
		"RunLast":        {[]lease.EveryOption{lease.Missed(lease.RunLast)}, []int{5}},
		"without a word": {nil, []int{5}},
		"RunAll":         {[]lease.EveryOption{lease.Missed(lease.RunAll)}, []int{1, 2, 3, 4, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := lockkey.Of("report", name)
			settled := setBack(t, db, k, time.Hour)
			r := newRuns(t)
			every(t, open(t, db), k, lease.Interval(step), r.fn, c.opts...)
			for _, want := range c.runs {
				if tick := r.next(); tick.Sub(settled) != time.Duration(want)*step {
					t.Fatalf("run is the tick of %s, want that of %s", tick.Sub(settled), time.Duration(want)*step)
				}
			}
		})
	}
	t.Run("Skip", func(t *testing.T) {
		t.Parallel()
		k := lockkey.Of("report", "Skip")
		settled := setBack(t, db, k, 5*time.Second)
		r := newRuns(t)
		var began time.Time
		if err := db.QueryRowContext(t.Context(), "SELECT clock_timestamp()").Scan(&began); err != nil {
			t.Fatal(err)
		}
		every(t, open(t, db), k, lease.Interval(2*time.Second), r.fn, lease.Missed(lease.Skip))
		if tick := r.next(); !tick.After(began) || tick.Sub(settled)%(2*time.Second) != 0 {
			t.Errorf("run is the tick of %s, which was missed %s before", tick.Sub(settled), began.Sub(tick))
		}
	})
}

// After an outage RunAll runs every tick, and none twice.
func TestEvery_runsAllAfterAnOutage(t *testing.T) {
	t.Parallel()
	db := tables(t)
	k := lockkey.Of("report")
	const step = 20 * time.Millisecond
	settled := setBack(t, db, k, 4*time.Second)
	r := newRuns(t)
	every(t, open(t, db), k, lease.Interval(step), r.fn, lease.Missed(lease.RunAll))
	for i := range 250 {
		if tick := r.next(); tick.Sub(settled) != time.Duration(i+1)*step {
			t.Fatalf("run %d is the tick of %s", i, tick.Sub(settled))
		}
	}
}

// If a run takes longer than the interval, the next ticks are missed.
func TestEvery_skipsWhatComesDuringARun(t *testing.T) {
	t.Parallel()
	db := tables(t)
	k := lockkey.Of("report")
	const step = 400 * time.Millisecond
	r := newRuns(t)
	long := make(chan struct{})
	ended := make(chan time.Time, 10)
	for range 2 {
		every(t, open(t, db), k, lease.Interval(step), func(ctx context.Context, tick time.Time) error {
			defer r.begin(tick)()
			select {
			case <-long:
			case <-time.After(1000 * time.Millisecond): // and two ticks come
			case <-ctx.Done():
			}
			ended <- time.Now()
			return nil
		}, lease.Missed(lease.Skip))
	}
	first := r.next()
	second, end := r.next(), <-ended
	if apart := second.Sub(first); apart < 3*step || apart%step != 0 || second.Before(end) {
		t.Errorf("the second run is the tick %s after the first, which ended %s after it", apart, end.Sub(first))
	}
	close(long)
}

func TestEvery_aTickThatFailsIsTriedAgainAndGivenUp(t *testing.T) {
	t.Parallel()
	db := tables(t)
	errNo := errors.New("no \x00 such \xff luck")
	for name, fail := range map[string]func() error{
		"an error": func() error { return errNo },
		"a panic":  func() error { panic("no such luck") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := lockkey.Of("report", name)
			w := &pgtest.Hearer{}
			r := newRuns(t)
			setBack(t, db, k, time.Second)
			every(t, open(t, db, lease.Observer(w)), k, lease.Interval(900*time.Millisecond), func(_ context.Context, tick time.Time) error {
				defer r.begin(tick)()
				return fail()
			}, lease.Tries(2), lease.Missed(lease.Skip), lease.Missed(lease.RunLast))
			first := r.next()
			if again := r.next(); !again.Equal(first) {
				t.Fatalf("after the failed tick %s came %s", first, again)
			}
			if next := r.next(); !next.After(first) {
				t.Fatalf("the tick %s is run a third time, as %s", first, next)
			}
			for _, e := range w.Events() {
				if e.Kind == observe.GivenUp {
					if e.Key != k.String() || e.Err == nil || !strings.Contains(e.Err.Error(), "such") || e.Source != "lease" || e.Token == 0 {
						t.Errorf("given up: %+v", e)
					}
					return
				}
			}
			t.Errorf("nobody was told: %v", w.Events())
		})
	}
}

// If a process dies during a run, another process runs the tick, whatever Missed says. The outcome of a run that lost its lease does not count, and
// its guarded writes are refused.
func TestEvery_aRunThatLosesItsLease(t *testing.T) {
	t.Parallel()
	proxy, m, db := tapped(t)
	k := lockkey.Of("report")
	setBack(t, db, k, time.Second)
	r, again := newRuns(t), newRuns(t)
	stalled, ended := make(chan context.Context), make(chan struct{})
	var lost fence.Token
	every(t, m, k, lease.Interval(900*time.Millisecond), func(ctx context.Context, tick time.Time) error {
		select {
		case <-ended: // it is back, and may run the next tick
			return again.fn(ctx, tick)
		default:
		}
		r.came <- tick
		lost = fence.FromContext(ctx)[0]
		stalled <- ctx
		<-ended
		return nil
	}, lease.TTL(500*time.Millisecond), lease.Missed(lease.RunLast))
	first := r.next()
	ctx := <-stalled
	proxy.Refuse()
	proxy.Cut()
	every(t, open(t, db), k, lease.Interval(900*time.Millisecond), again.fn, lease.Missed(lease.RunAll))
	if tick := again.next(); !tick.Equal(first) {
		t.Errorf("the tick %s was begun, and after the loss %s", first, tick)
	}
	pgtest.Await(t, "the ctx of the run that lost its lease", ctx.Done())
	if !errors.Is(context.Cause(ctx), lease.ErrLost) {
		t.Errorf("it ended by %v", context.Cause(ctx))
	}
	close(ended)
	proxy.Admit()
	var refused bool
	if err := db.QueryRowContext(t.Context(), "SELECT NOT ("+lost.Guard(1)+")", lost.Args()...).Scan(&refused); err != nil || !refused {
		t.Errorf("a write with its token is refused: %v, %v", refused, err)
	}
	if tick := again.next(); tick.Sub(first) != 900*time.Millisecond {
		t.Errorf("after %s came %s", first, tick)
	}
}

func TestEvery_restartsShiftNothing(t *testing.T) {
	t.Parallel()
	db := tables(t)
	k := lockkey.Of("report")
	r := newRuns(t)
	const step = 300 * time.Millisecond
	var last time.Time
	for i := range 4 {
		stop := every(t, open(t, db), k, lease.Interval(step), r.fn, lease.Missed(lease.RunAll))
		tick := r.next()
		if i > 0 && tick.Sub(last) != step {
			t.Errorf("after %s came %s", last, tick)
		}
		last = tick
		stop()
		for len(r.came) > 0 {
			last = <-r.came
		}
	}
}

func TestEvery_aNewScheduleCountsAtOnce(t *testing.T) {
	t.Parallel()
	db := tables(t)
	k := lockkey.Of("report")
	settled := setBack(t, db, k, time.Hour)
	stop := every(t, open(t, db), k, lease.Interval(24*time.Hour), newRuns(t).fn)
	id, _ := k.Int64()
	for next := (sql.NullTime{}); !next.Valid; {
		if err := db.QueryRowContext(t.Context(), "SELECT max(next_at) FROM gormlock_schedule WHERE id = $1", id).Scan(&next); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	r := newRuns(t)
	every(t, open(t, db), k, lease.Interval(40*time.Minute), r.fn)
	if tick := r.next(); tick.Sub(settled) != 40*time.Minute {
		t.Errorf("run is the tick of %s", tick.Sub(settled))
	}
}

func TestEvery_ends(t *testing.T) {
	t.Parallel()
	db := tables(t)
	m := open(t, db)
	running, ended := make(chan struct{}), false
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-running
		cancel()
	}()
	err := m.Every(ctx, lockkey.Of("ctx"), lease.Interval(50*time.Millisecond), func(ctx context.Context, _ time.Time) error {
		close(running)
		<-ctx.Done()
		ended = true
		return nil
	})
	if !errors.Is(err, context.Canceled) || !ended {
		t.Errorf("ctx ended: %v, and fn had returned: %v", err, ended)
	}
	var done sql.NullTime
	id, _ := lockkey.Of("ctx").Int64()
	if err := db.QueryRowContext(t.Context(), "SELECT done_at FROM gormlock_schedule WHERE id = $1", id).Scan(&done); err != nil || !done.Valid {
		t.Errorf("a run that returned nil is done: %v, %v", done, err)
	}
	closing := open(t, db)
	err = closing.Every(t.Context(), lockkey.Of("closed"), lease.Interval(50*time.Millisecond), func(ctx context.Context, _ time.Time) error {
		go func() { _ = closing.Close(context.WithoutCancel(ctx)) }()
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, lease.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

func TestEvery_refuses(t *testing.T) {
	t.Parallel()
	m := open(t, tables(t))
	never := func(context.Context, time.Time) error { panic("it runs") }
	for name, c := range map[string]struct {
		key  lockkey.Key
		s    lease.Schedule
		opts []lease.EveryOption
		is   error
	}{
		"no schedule":      {lockkey.Of("k"), nil, nil, lease.ErrOption},
		"Interval(0)":      {lockkey.Of("k"), lease.Interval(0), nil, lease.ErrOption},
		"Interval(-1)":     {lockkey.Of("k"), lease.Interval(-1), nil, lease.ErrOption},
		"Daily(24, 0)":     {lockkey.Of("k"), lease.Daily(24, 0, time.UTC), nil, lease.ErrOption},
		"Daily in no zone": {lockkey.Of("k"), lease.Daily(3, 0, nil), nil, lease.ErrOption},
		"no next time":     {lockkey.Of("k"), over{}, nil, lease.ErrOption},
		"a next time that the server cannot store": {lockkey.Of("k"), distant{}, nil, lease.ErrOption},
		"Tries(0)":  {lockkey.Of("k"), lease.Interval(time.Hour), []lease.EveryOption{lease.Tries(0)}, lease.ErrOption},
		"Missed(0)": {lockkey.Of("k"), lease.Interval(time.Hour), []lease.EveryOption{lease.Missed(0)}, lease.ErrOption},
		"TTL(0)":    {lockkey.Of("k"), lease.Interval(time.Hour), []lease.EveryOption{lease.TTL(0)}, lease.ErrOption},
		"no key":    {lockkey.Key{}, lease.Interval(time.Hour), nil, lockkey.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), bound)
			defer cancel()
			if err := m.Every(ctx, c.key, c.s, never, c.opts...); !errors.Is(err, c.is) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// distant is a schedule whose next tick PostgreSQL cannot store.
type distant struct{}

func (distant) Next(time.Time) time.Time { return time.Unix(1<<60, 0) }

// over is a schedule whose last tick was long ago.
type over struct{}

func (over) Next(time.Time) time.Time { return time.Time{} }

// Older tables get the new columns, and until then Every says what is missing.
func TestMigrate_upgradesTheTablesOfBefore(t *testing.T) {
	t.Parallel()
	db := tables(t)
	if _, err := db.ExecContext(t.Context(), "DROP TABLE gormlock_schedule"); err != nil {
		t.Fatal(err)
	}
	m := open(t, db)
	release(t, acquire(t, m, lockkey.Of("report"), time.Minute))
	err := m.Every(t.Context(), lockkey.Of("report"), lease.Interval(time.Hour), newRuns(t).fn)
	if !errors.Is(err, lease.ErrTable) || !strings.Contains(fmt.Sprint(err), "lease.Migrate") {
		t.Errorf("got %v", err)
	}
	for range 2 {
		if err := lease.Migrate(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	r := newRuns(t)
	every(t, m, lockkey.Of("report"), lease.Interval(20*time.Millisecond), r.fn)
	r.next()
}

// Under Skip a process that comes late settles nothing: another process may have waited for the tick, and be about to begin it.
func TestEvery_skipTakesNothingFromThoseWhoWaited(t *testing.T) {
	t.Parallel()
	db := tables(t)
	k, settled := missedTick(t, db)
	every(t, open(t, db), k, lease.Interval(time.Hour), newRuns(t).fn, lease.Missed(lease.Skip))
	id, _ := k.Int64()
	var next sql.NullTime
	for !next.Valid {
		if err := db.QueryRowContext(t.Context(), "SELECT next_at FROM gormlock_schedule WHERE id = $1", id).Scan(&next); err != nil {
			t.Fatal(err)
		}
	}
	var now time.Time
	if err := db.QueryRowContext(t.Context(), "SELECT settled_at FROM gormlock_schedule WHERE id = $1", id).Scan(&now); err != nil || !now.Equal(settled) {
		t.Errorf("settled up to %s, %v", now.Sub(settled), err)
	}
	if next.Time.Sub(settled) != 2*time.Hour {
		t.Errorf("it waits for the tick of %s", next.Time.Sub(settled))
	}
}

// dates is a schedule of a few dates, and then ends.
type dates []time.Time

func (d dates) Next(t time.Time) time.Time {
	if i := slices.IndexFunc(d, func(at time.Time) bool { return at.After(t) }); i >= 0 {
		return d[i]
	}
	return time.Time{}
}

// Every tick of a schedule that ends is run, including the last one. Then Every returns, and a restart returns at once.
func TestEvery_ofAScheduleThatEnds(t *testing.T) {
	t.Parallel()
	db := tables(t)
	for name, missed := range map[string]lease.MissedPolicy{"RunLast": lease.RunLast, "Skip": lease.Skip, "RunAll": lease.RunAll} {
		for _, ticks := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, %d", name, ticks), func(t *testing.T) {
				t.Parallel()
				var days dates
				for i := range ticks {
					days = append(days, time.Now().Add(time.Duration(i+1)*2*time.Second))
				}
				m, k, ran := open(t, db), lockkey.Of(t.Name()), 0
				for _, when := range []string{"first", "restarted"} {
					ctx, cancel := context.WithTimeout(t.Context(), bound)
					err := m.Every(ctx, k, days, func(context.Context, time.Time) error { ran++; return nil }, lease.Missed(missed))
					cancel()
					if ran != ticks || !errors.Is(err, lease.ErrOption) {
						t.Errorf("%s: %d of %d ticks ran: %v", when, ran, ticks, err)
					}
				}
			})
		}
	}
}

// If a schedule ended while no process was running, its last tick is missed like any other.
func TestEvery_ofAScheduleThatHasEnded(t *testing.T) {
	t.Parallel()
	db := tables(t)
	for missed, want := range map[lease.MissedPolicy]int{lease.Skip: 0, lease.RunLast: 1, lease.RunAll: 2} {
		k, ran := lockkey.Of("ended", int64(missed)), 0
		settled := setBack(t, db, k, time.Hour)
		days := dates{settled.Add(time.Minute), settled.Add(2 * time.Minute)}
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		err := open(t, db).Every(ctx, k, days, func(context.Context, time.Time) error { ran++; return nil }, lease.Missed(missed))
		cancel()
		if ran != want || !errors.Is(err, lease.ErrOption) {
			t.Errorf("%d: %d ticks ran, not %d: %v", missed, ran, want, err)
		}
	}
}
