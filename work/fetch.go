package work

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/observe"
)

// wants is how many jobs to claim now.
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
	load, room := e.busy+len(e.queue)+len(e.outcomes)/2, e.config.workers+ahead // no faster than their ends are stored
	want := room - load
	if len(e.queue) > 0 && want*2 < room {
		return 0
	}
	return even(want)
}

// even makes few different limits of many, since each is another statement to the server.
func even(n int) int {
	step := 1
	for n/step > 16 {
		step *= 2
	}
	return max(n, 0) / step * step
}

// fetch claims until ctx ends; draining, until there is nothing to do.
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
			if looked { // what was seen then, somebody else has
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

// claimNext claims up to n jobs. The end of the run does not cut a claim short that is on its way: the server may have made it,
// and then what it returns is to be given back.
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

// take queues what was claimed.
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

// giveBack has jobs that were not begun free for others. The caller holds mu.
func (e *engine) giveBack(items []*item) {
	for _, it := range items {
		if !it.over {
			it.over = true
			e.outcomes = append(e.outcomes, outcome{item: it, state: ready, uncounted: true})
		}
	}
	poke(e.finished)
}

// giveBackStale gives back what was claimed ahead, when handlers suddenly take their time.
func (e *engine) giveBackStale() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 || time.Since(e.queue[0].claimed) < stale || time.Since(e.ended) < stale {
		return // or it is the machine that is slow
	}
	e.average = max(e.average, stale)
	e.giveBack(e.queue)
	e.queue = nil
}
