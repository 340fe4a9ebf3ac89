package work

import (
	"context"
	"time"

	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/observe"
)

// fetch claims jobs until ctx ends. In Drain it also ends when there is nothing left to do.
func (e *engine) fetch(ctx context.Context, draining bool) error {
	poll := time.NewTicker(e.poll)
	defer poll.Stop()
	tidy := time.NewTicker(stale / 4)
	defer tidy.Stop()
	pause, vain, rested, looked := time.Duration(0), time.Duration(0), time.Time{}, false
	for ctx.Err() == nil {
		n := e.wants()
		in, suspects := e.refused.claim.due()
		if n > 0 && (e.source.more() || suspects && in == 0) {
			met := e.refused.claim.meets()
			got, tried, err := e.claimNext(ctx, n)
			tried += e.refused.claim.meets() - met
			looked = looked && got == 0
			switch {
			case err == nil && got+tried == 0 && !draining && e.source.more(): // other workers are faster, or something hides the jobs
				pause, vain = 0, min(max(2*vain, time.Millisecond), 250*time.Millisecond)
				rest(ctx, vain)
				rested = time.Now()
				continue
			case err == nil:
				if pause = 0; got > 0 || time.Since(rested) > behind {
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
		if draining && e.isFull() {
			return nil
		}
		if draining && !e.source.more() && e.drained() {
			if looked { // another worker has the jobs that were seen then
				return nil
			}
			if err := e.lookNow(ctx); err != nil {
				return err
			}
			if looked = !e.refused.searching(); looked && !e.source.more() {
				return nil
			}
			continue
		}
		var again <-chan time.Time
		if suspects && n > 0 {
			again = time.After(in)
		}
		select {
		case <-again:
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

// claimNext claims up to n jobs. If it is time for suspects, half of them are suspects. Jobs are queued as they come. It returns how many jobs it
// got, and how many parts of the suspects it has tried. The end of the run does not cancel a claim that is on its way: the server may have executed
// it, and then its jobs must be released.
func (e *engine) claimNext(ctx context.Context, n int) (got, tried int, err error) {
	asking, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	cut := context.AfterFunc(ctx, func() {
		rest(asking, flush)
		stop()
	})
	defer cut()
	claim := func(items []*item, err error) (int, error) {
		e.take(ctx, items)
		got += len(items)
		return len(items), err
	}
	r, others := &e.refused.claim, n
	suspects := func() bool {
		in, is := r.due()
		return is && in == 0 && (r.rested() || !e.source.more())
	}
	if suspects() {
		e.turn = (e.turn + n) % 2 // if the number is odd, suspects and others take turns in getting one more
		others = (n + e.turn) / 2
	}
	if others > 0 {
		_, err = claim(e.source.claim(asking, others))
	}
	if err == nil && suspects() { // there may be suspects since this claim
		room := func() int {
			if ctx.Err() != nil {
				return 0
			}
			return n - got
		}
		tried, err = e.search(asking, r, room, func(part []int64) (int, error) { return claim(e.source.claimSuspects(asking, part)) })
	}
	switch {
	case sqlstate.MayBeDone(err):
		e.unsure, e.failed = true, time.Now()
	case err == nil && !e.failed.IsZero():
		_, err = claim(e.late(asking), nil)
	}
	return got, tried, err
}

// late returns the jobs of a claim that failed here although the server executed it. The server may also execute it some seconds later, so late is
// called for some time.
func (e *engine) late(ctx context.Context) []*item {
	sent := e.proofs.clock()
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
	e.hold(items, sent)
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
