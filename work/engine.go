package work

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/observe"
)

const (
	// horizon is for how long in advance a process claims work for its workers.
	horizon = 50 * time.Millisecond
	// aheadMost is the same limit in jobs for each worker.
	aheadMost = 25
	// stale is how long a job that was claimed in advance may wait before it is released for others.
	stale = time.Second
	// behind is how often, at least, a worker looks for jobs behind the position of its claims.
	behind = 5 * time.Second
	// outcomesMost is how many outcomes may wait to be stored. Beyond that no further handler begins.
	outcomesMost = 2000
	// flush is how long, besides its Grace, the end of a run may take, with a claim that is on its way.
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
	over    bool                    // its outcome is known, or another process has the job
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
	unsure bool            // a claim failed that the server may have executed; used by one goroutine at a time
	base   context.Context // of handlers
	end    context.CancelCauseFunc

	mu       sync.Mutex
	cond     sync.Cond // a job is queued, or the run ends
	queue    []*item   // claimed, and not begun
	held     map[int64]*item
	busy     int           // handlers that run
	average  time.Duration // of the time of a handler
	ended    time.Time     // when the last handler did
	stopping bool
	given    int       // how many jobs were given to a handler
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

// wake is called when there may be new jobs.
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

// work takes jobs from the queue until the run ends.
func (e *engine) work() {
	whole := false
	defer func() {
		if !whole { // the handler called runtime.Goexit
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
		if it.over { // lost while it was queued
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

// settle finds out what the end of a handler means for its job.
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

// forget takes a job from those that are held, unless its row was claimed again since.
func (e *engine) forget(it *item) {
	if e.held[it.id] == it {
		delete(e.held, it.id)
	}
}

// lost ends the handler of a job that another process may have now.
func (e *engine) lost(it *item) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget(it)
	it.over = true
	if it.cancel != nil {
		it.cancel(ErrTakenOver)
	}
	poke(e.signal)
}

// settled removes a job whose outcome is stored.
func (e *engine) settled(it *item) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget(it)
	if e.t.one != "" {
		e.source.freed()
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
