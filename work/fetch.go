package work

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/observe"
)

// fetch claims until ctx ends. In Drain it ends when there is nothing to do.
func (e *engine) fetch(ctx context.Context, draining bool) error {
	poll := time.NewTicker(e.poll)
	defer poll.Stop()
	tidy := time.NewTicker(stale / 4)
	defer tidy.Stop()
	pause, vain, rested, looked := time.Duration(0), time.Duration(0), time.Time{}, false
	for ctx.Err() == nil {
		if n := e.wants(); n > 0 && e.source.more() {
			got, err := e.claimNext(ctx, n)
			e.take(ctx, got)
			looked = looked && len(got) == 0
			switch {
			case err == nil && len(got) == 0 && !draining && e.source.more(): // others are faster, or something hides the jobs
				pause, vain = 0, min(max(2*vain, time.Millisecond), 250*time.Millisecond)
				rest(ctx, vain)
				rested = time.Now()
				continue
			case err == nil:
				if pause = 0; len(got) > 0 || time.Since(rested) > behind {
					vain = 0
				}
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
			if !draining && (e.t.one == "" || !e.source.more()) {
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
	switch {
	case err != nil && sqlstate.Of(err) == "" && !pgconn.SafeToRetry(err):
		e.unsure, e.failed = true, time.Now()
	case err == nil && !e.failed.IsZero():
		got = append(got, e.late(asking)...)
	}
	return got, err
}

// late returns the jobs of a claim that failed here and that the server has executed. It may execute it some seconds later.
func (e *engine) late(ctx context.Context) []*item {
	items, err := e.unheard(ctx)
	if err != nil {
		return nil
	}
	if time.Since(e.failed) > flush {
		e.failed = time.Time{}
	}
	for _, it := range items {
		e.alone(it)
	}
	e.hold(items)
	return items
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// take queues the jobs of a claim.
func (e *engine) take(ctx context.Context, got []*item) {
	if len(got) == 0 {
		return
	}
	e.tell(ctx, observe.Event{Kind: observe.Claimed, Rows: int64(len(got))})
	e.add(got)
}
