package work

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/observe"
)

// wants returns how many jobs to claim now.
func (e *engine) wants() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopping {
		return 0
	}
	ahead := 0
	if e.given > 0 {
		ahead = int(min(int64(horizon)*int64(e.config.workers)/max(int64(e.average), 1), int64(e.config.workers*aheadMost)))
	}
	load, room := e.busy+len(e.queue)+len(e.outcomes)/2, e.config.workers+ahead // not faster than outcomes are stored
	want := room - load
	if len(e.queue) > 0 && want*2 < room {
		return 0
	}
	return even(want)
}

// even rounds limits, so there are few different ones: each is another statement for the server.
func even(n int) int {
	step := 1
	for n/step > 16 {
		step *= 2
	}
	return max(n, 0) / step * step
}

// fetch claims until ctx ends. In Drain it ends when there is nothing to do.
func (e *engine) fetch(ctx context.Context, draining bool) error {
	poll := time.NewTicker(e.poll)
	defer poll.Stop()
	tidy := time.NewTicker(stale / 4)
	defer tidy.Stop()
	pause, looked := time.Duration(0), false
	for ctx.Err() == nil {
		if n := e.wants(); n > 0 && e.source.more() {
			got, err := e.claimNext(ctx, n)
			e.take(ctx, got)
			looked = looked && len(got) == 0
			switch {
			case err == nil:
				pause = 0
				continue
			case draining || ctx.Err() != nil:
				return err
			}
			pause = min(max(2*pause, 50*time.Millisecond), 5*time.Second)
			e.log(ctx, "gormlock: work: claim jobs of %s: %v", e.t.name, err)
			e.source.again()
			rest(ctx, pause)
			continue
		}
		if draining && !e.source.more() && e.idle() {
			if looked { // what was seen then, another worker has now
				return nil
			}
			if err := e.lookNow(ctx); err != nil {
				return err
			}
			looked = true
			if !e.source.more() {
				return nil
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-e.signal:
		case <-poll.C:
			if !draining {
				e.source.again()
			}
		case <-tidy.C:
			e.giveBackStale()
		}
	}
	return ctx.Err()
}

// claimNext claims up to n jobs. The end of the run does not cancel a claim that is on its way: the server may have
// executed it, and its jobs must be released.
func (e *engine) claimNext(ctx context.Context, n int) ([]*item, error) {
	asking, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	cut := context.AfterFunc(ctx, func() {
		rest(asking, flush)
		stop()
	})
	defer cut()
	got, err := e.source.claim(asking, n)
	if err != nil && sqlstate.Of(err) == "" && !pgconn.SafeToRetry(err) {
		e.unsure = true
	}
	return got, err
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (e *engine) idle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.held) == 0
}

// take queues the jobs of a claim.
func (e *engine) take(ctx context.Context, got []*item) {
	if len(got) == 0 {
		return
	}
	e.tell(ctx, observe.Event{Kind: observe.Claimed, Rows: int64(len(got))})
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, it := range got {
		it.claimed = time.Now()
		e.held[it.id] = it
	}
	if e.stopping {
		e.giveBack(got)
		return
	}
	e.queue = append(e.queue, got...)
	e.cond.Broadcast()
}

// giveBack releases jobs that have not begun. The caller holds mu.
func (e *engine) giveBack(items []*item) {
	for _, it := range items {
		if !it.over {
			it.over = true
			e.outcomes = append(e.outcomes, outcome{item: it, state: ready, uncounted: true})
		}
	}
	poke(e.finished)
}

// giveBackStale releases jobs that were claimed in advance, if handlers have become slow.
func (e *engine) giveBackStale() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 || time.Since(e.queue[0].claimed) < stale || time.Since(e.ended) < stale {
		return // perhaps the machine is slow
	}
	e.average = max(e.average, stale)
	e.giveBack(e.queue)
	e.queue = nil
}
