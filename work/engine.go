package work

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/observe"
)

const (
	// horizon is how much work a process claims ahead of its workers, in time.
	horizon = 50 * time.Millisecond
	// aheadMost bounds it in jobs for each worker.
	aheadMost = 25
	// stale is how long a job may wait that was claimed ahead, before it is given back to others.
	stale = time.Second
	// behind is how often a worker looks behind itself, at least.
	behind = 5 * time.Second
	// outcomesMost is how many handlers may have ended whose jobs' ends are not stored, before no further one begins.
	outcomesMost = 2000
	// flush is how long the end of a run may take beside its Grace, and a claim that is on its way then.
	flush = 5 * time.Second
)

// item is a job that this process has claimed.
type item struct {
	id       int64
	attempt  int
	most     int
	level    level
	priority int
	handle   func(ctx context.Context) error
	shared   *attempt

	// under engine.mu
	claimed time.Time
	begun   time.Time
	cancel  context.CancelCauseFunc // of its handler's context
	over    bool                    // its end is settled, or somebody else's
}

// engine is one run of a worker.
type engine struct {
	*config
	db    fresh
	t     *table
	owner string
	claim func(ctx context.Context, n int, scope func(*gorm.DB) *gorm.DB) ([]*item, error)
	log   func(ctx context.Context, format string, args ...any)

	source source
	unsure bool            // a claim has failed that the server may have made; for one goroutine after the other
	base   context.Context // of handlers
	end    context.CancelCauseFunc

	mu       sync.Mutex
	cond     sync.Cond // a job is queued, or the run ends
	queue    []*item   // claimed, and not begun
	held     map[int64]*item
	busy     int           // handlers that run
	average  time.Duration // of what a handler takes
	ended    time.Time     // when the last handler did
	stopping bool
	given    int       // how many jobs a handler was asked to work on
	outcomes []outcome // to be stored

	signal   chan struct{} // for the fetcher: something has changed
	scout    chan struct{} // for the scout: look now
	finished chan struct{} // for the finisher: there are outcomes
	workers  sync.WaitGroup
}

func newEngine(ctx context.Context, c *config) *engine {
	e := &engine{config: c, held: map[int64]*item{}, signal: make(chan struct{}, 1), scout: make(chan struct{}, 1), finished: make(chan struct{}, 1)}
	e.cond.L = &e.mu
	e.base, e.end = context.WithCancelCause(context.WithoutCancel(ctx))
	return e
}

func (e *engine) takes(queue string) bool { return e.queues == nil || slices.Contains(e.queues, queue) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// wake is called by whoever has heard of jobs.
func (e *engine) wake(h hints) {
	look := h == nil
	for _, each := range h {
		look = look || each.later
	}
	e.source.hear(h)
	poke(e.signal)
	if look {
		poke(e.scout)
	}
}

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

// work takes jobs from the queue until the run ends.
func (e *engine) work() {
	whole := false
	defer func() {
		if !whole { // a handler has ended its goroutine
			go e.work()
			return
		}
		e.workers.Done()
	}()
	for {
		e.mu.Lock()
		for (len(e.queue) == 0 || len(e.outcomes) > outcomesMost) && !e.stopping {
			e.cond.Wait()
		}
		if e.stopping {
			e.mu.Unlock()
			whole = true
			return
		}
		it := e.queue[0]
		e.queue = e.queue[1:]
		if it.over { // lost while it waited
			e.mu.Unlock()
			continue
		}
		it.begun = time.Now()
		var ctx context.Context
		ctx, it.cancel = context.WithCancelCause(e.base)
		e.busy++
		e.given++
		e.mu.Unlock()
		poke(e.signal)
		e.run(ctx, it)
	}
}

// run runs a job's handler.
func (e *engine) run(ctx context.Context, it *item) {
	err := fmt.Errorf("the handler ended its goroutine")
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n\n%s", cause, debug.Stack())
		}
		e.settle(it, err)
	}()
	err = it.handle(ctx)
}

// settle judges what a handler's end means for its job.
func (e *engine) settle(it *item, err error) {
	o := e.judge(it, err)
	e.mu.Lock()
	it.cancel(nil)
	e.busy--
	e.ended = time.Now()
	took := e.ended.Sub(it.begun)
	e.average += (took - e.average) / 8
	if !it.over {
		it.over = true
		o.took = took
		e.outcomes = append(e.outcomes, o)
		poke(e.finished)
	}
	e.mu.Unlock()
	poke(e.signal)
}

// lost ends the handler of a job that somebody else may have by now.
func (e *engine) lost(it *item) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held[it.id] == it {
		delete(e.held, it.id)
	}
	it.over = true
	if it.cancel != nil {
		it.cancel(ErrTakenOver)
	}
	poke(e.signal)
}

// settled forgets a job whose end the server knows.
func (e *engine) settled(it *item) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held[it.id] == it {
		delete(e.held, it.id)
	}
	if e.t.one != "" {
		e.source.again() // the next of its value may be worked on
	}
	poke(e.signal)
}

func (e *engine) tell(ctx context.Context, what observe.Event) {
	if e.observer == nil {
		return
	}
	what.Source, what.Table, what.Owner = "work", e.t.name, e.owner
	e.observer.Observe(ctx, what)
}

func (e *engine) tellOf(id int64, what observe.Event) {
	what.Key = strconv.FormatInt(id, 10)
	e.tell(e.base, what)
}
