package lease

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/gormlock/gormlock/internal/cause"
	"github.com/gormlock/gormlock/internal/sound"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/observe"
)

const (
	// longestSleep is after how long Every reads the row again, whatever the schedule says: somebody may have set the clock of the database.
	longestSleep = 30 * time.Second
	// firstBackoff and longestBackoff are the shortest and the longest pause after a run that failed.
	firstBackoff   = time.Second
	longestBackoff = time.Minute
)

// Every calls fn for each tick of schedule, in one of the processes that call it with this key, until ctx ends. The
// row of the key in the table gormlock_schedule, which [Migrate] creates, and the clock of the database decide. So
// restarts neither shift nor repeat a tick.
//
//   - Only one run of a key is on at a time, and ticks are run in order. fn is called with the tick it is for, in
//     UTC, and with a ctx like that of [Lease.Bind]: it carries the fencing token and ends when the lease of the run
//     is lost.
//   - A tick whose run returned nil is not run again. One whose run returned an error, panicked, lost its lease or died
//     with its process is run again, by any process, after a pause that grows: see [Tries]. So fn can be called twice
//     for a tick, and the second call may find what the first has done.
//   - A run that is cut short is no failure: if fn returns an error after ctx ended, another process runs the tick at once,
//     and it does not count among the Tries. So a deployment costs a tick none of its Tries. Close the manager after Every
//     has returned, not before: closing it takes the lease from the run.
//   - Ticks that nobody could begin on time are treated as [Missed] says.
//   - If the schedule of a key changes, it counts from the last tick of the old one.
//
// A run holds the lease of key. While a [Manager.Do] or a leader holds the same key, no tick is run.
//
// Every returns the error of ctx when that ends, after fn has returned, and [ErrClosed] when the manager is closed.
// [ErrTable]: the table is missing, or may not be written. [ErrOption]: an option makes no sense, or the schedule has
// no next time, after its last tick has had its turn. While the database is down, or its statement_timeout or lock_timeout ends the statements, Every waits.
func (m *Manager) Every(ctx context.Context, key lockkey.Key, schedule Schedule, fn func(ctx context.Context, tick time.Time) error, opts ...EveryOption) error {
	t, err := newTerms(opts)
	if err == nil {
		err = checkSchedule(schedule)
	}
	if err == nil && fn == nil {
		err = errNilFunction
	}
	if err != nil {
		return err
	}
	r, err := newRequest(m.store.table, key, t.ttl, nil)
	if err != nil {
		return err
	}
	e := &every{terms: t, m: m, key: key, schedule: schedule, fn: fn, within: r.within()}
	e.rows = &scheduleStore{m.store.server, r.token, m.config.owner, max(t.ttl/3, leastWithin)}
	if err := e.run(ctx); ctx.Err() == nil || !passes(err) {
		return cause.Add(ctx, err)
	}
	return cause.Add(ctx, ctx.Err())
}

// every is one call of Every.
type every struct {
	*terms
	m        *Manager
	key      lockkey.Key
	schedule Schedule
	fn       func(ctx context.Context, tick time.Time) error
	rows     *scheduleStore
	within   time.Duration // bounds the wait for the answer to "may the run begin?"

	announced time.Time
	searched  struct{ first, last time.Time } // what lastTwo found last
}

// run finds out what is to be done and does it, until ctx ends.
func (e *every) run(ctx context.Context) error {
	var awaited time.Time
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.m.holdings.isClosed() {
			return leaseError(e.key, ErrClosed, nil, "")
		}
		p, err := e.rows.look(ctx)
		if err != nil {
			if err := e.weather(ctx, err); err != nil {
				return err
			}
			continue
		}
		next, err := e.plan(p, awaited)
		switch {
		case err != nil:
			return err
		case !next.at.IsZero():
			awaited = next.awaiting
			if err := e.announce(ctx, p, awaited); err != nil {
				return err
			}
			e.m.background.sleep(ctx, min(next.at.Sub(p.now), longestSleep))
			continue
		case !p.tick.IsZero():
			awaited = time.Time{} // an earlier tick must be run first
		}
		if err := e.turn(ctx, p, awaited); err != nil {
			return err
		}
	}
}

// announce stores the tick that is waited for, for people, once for each tick. The run before it stores it too. The first tick is stored here
// anyway: if the role cannot write, no tick could begin, and so the error comes now.
func (e *every) announce(ctx context.Context, p *progress, awaited time.Time) error {
	first := e.announced.IsZero()
	if e.announced.Equal(awaited) || awaited.IsZero() {
		return nil
	}
	e.announced = awaited
	if !first && p.next.Equal(awaited) {
		return nil
	}
	if err := e.rows.announce(ctx, awaited); err != nil && ctx.Err() == nil && !passes(err) {
		return err
	}
	return nil
}

// turn takes the lease if it is free, and does under it what is to be done.
func (e *every) turn(ctx context.Context, p *progress, awaited time.Time) error {
	within, cancel := context.WithTimeout(ctx, e.within)
	l, err := e.m.TryAcquire(within, e.key, e.ttl, as(runner))
	cancel()
	if errors.Is(err, ErrNotAcquired) {
		wait := longestPoll
		if !p.tick.IsZero() { // another process runs a tick, which may take long
			wait = min(max(wait, e.ttl/4), heardPoll)
		}
		e.m.background.pause(ctx, wait)
		return nil
	}
	if err != nil {
		return e.weather(ctx, err)
	}
	defer func() {
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
		defer cancel()
		_ = l.Release(detached) // if this fails, the lease runs out
	}()
	for l.Err() == nil && ctx.Err() == nil {
		more, err := e.step(ctx, l, awaited)
		if err != nil {
			return e.weather(ctx, err)
		}
		if !more {
			return nil
		}
		awaited = time.Time{} // a tick that is due during a run is missed
	}
	return nil
}

// step does one thing under the lease, and reports whether there may be more to do now.
func (e *every) step(ctx context.Context, l *Lease, awaited time.Time) (more bool, err error) {
	p, err := e.rows.look(ctx)
	if err != nil {
		return false, err
	}
	next, err := e.plan(p, awaited)
	switch {
	case err != nil:
		return false, err
	case next.giveUp:
		return true, e.report(ctx, l, p.tick, outcome{giveUp: true, err: errors.New(p.whyGivenUp())})
	case !next.at.IsZero():
		return false, nil
	}
	next.after, _ = nextTick(e.schedule, next.tick)
	begun, attempt, err := e.begin(ctx, l, p, next)
	if err != nil || !begun || l.Err() != nil {
		return false, err
	}
	if err = ctx.Err(); err == nil {
		err = e.call(ctx, l, next.tick)
	}
	if ctx.Err() != nil && err != nil { // whatever err says: if ctx ended a transaction, it is sql.ErrTxDone
		return false, e.report(ctx, l, next.tick, outcome{err: err, interrupted: true})
	}
	return true, e.report(ctx, l, next.tick, outcome{err: err, giveUp: err != nil && attempt >= e.tries, pause: backoff(attempt)})
}

// begin stores that a tick has begun, even if ctx ends meanwhile: an unnoticed beginning would count among the Tries.
// If the answer was lost, the row shows whether it was stored: only this call has the token of l.
func (e *every) begin(ctx context.Context, l *Lease, p *progress, next plan) (begun bool, attempt int, err error) {
	ctx = context.WithoutCancel(ctx)
	begun, attempt, err = e.rows.begin(ctx, l.Token(), p, next)
	for err != nil && passes(err) && l.Err() == nil {
		now, failed := e.rows.look(ctx)
		if failed != nil {
			e.m.background.pause(ctx, firstPoll)
			continue
		}
		if now.token != l.Token().Number || !now.tick.Equal(next.tick) || now.attempts == p.attempts {
			return false, 0, err
		}
		return true, now.attempts, nil
	}
	return begun, attempt, err
}

// call runs fn. A panic is an error here, because the tick is run again.
func (e *every) call(ctx context.Context, l *Lease, tick time.Time) (err error) {
	bound, stop := l.Bind(ctx)
	defer stop()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return sound.Error(e.fn(bound, tick))
}

// outcome is the outcome of a run.
type outcome struct {
	err         error
	giveUp      bool
	interrupted bool          // the run does not count
	pause       time.Duration // before the tick is run again
}

// report stores the outcome of a run while the lease is held. After that the outcome does not count.
func (e *every) report(ctx context.Context, l *Lease, tick time.Time, o outcome) error {
	ctx = context.WithoutCancel(ctx)
	for {
		if l.Err() != nil {
			return nil //nolint:nilerr // the outcome no longer counts, and the tick is run again
		}
		counts, err := e.rows.end(ctx, l.Token(), tick, o)
		switch {
		case err != nil && passes(err), errors.Is(err, context.DeadlineExceeded):
			e.m.background.pause(ctx, longestPoll)
			if !e.m.holdings.isClosed() {
				continue
			}
			return err
		case err != nil:
			return err
		case counts && o.giveUp:
			e.m.observe(ctx, observe.Event{Kind: observe.GivenUp, Key: e.key.String(), Token: l.Token().Number, Err: o.err})
		}
		return nil
	}
}

// backoff is the pause after a run that failed.
func backoff(attempt int) time.Duration {
	if attempt > 6 {
		return longestBackoff
	}
	return min(firstBackoff<<(attempt-1), longestBackoff)
}

// weather waits a moment after an error that passes, and returns any other error.
func (e *every) weather(ctx context.Context, err error) error {
	if ctx.Err() == nil && !passes(err) {
		return err
	}
	e.m.background.pause(ctx, longestPoll)
	return nil
}

func (p *progress) whyGivenUp() string {
	if p.problem != "" {
		return p.problem
	}
	return fmt.Sprintf("%d runs ended without a word: their process died, or lost the lease", p.attempts)
}

// sleep waits for d and no longer, or until ctx or the manager ends.
func (b *background) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-b.ctx.Done():
	}
}
