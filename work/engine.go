package work

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pgarray"
	"github.com/gormlock/gormlock/internal/sound"
	"github.com/gormlock/gormlock/observe"
)

const (
	// horizon is how far in advance a process claims work for its workers.
	horizon = 50 * time.Millisecond
	// aheadMost is the same limit in jobs for each worker.
	aheadMost = 25
	// unproven is how long a job that was claimed in advance may wait before its handler first asks the server whether this process still has the
	// job: somebody may have stopped it. With fast handlers no job waits that long.
	unproven = 4 * horizon
	// unprovenMost is how long it may wait if the server is slow to answer.
	unprovenMost = 2 * time.Second
	// stale is how long a job that was claimed in advance may wait before it is released for other processes.
	stale = time.Second
	// behind is the longest time between two looks for jobs that claims have passed.
	behind = 5 * time.Second
	// outcomesMost is how many outcomes may wait to be stored. Beyond that no further handler begins.
	outcomesMost = 2000
	// flush bounds each step at the end of a run, in addition to its Grace: a claim that is on its way, and the storing of outcomes.
	flush = 5 * time.Second
)

// engine is one run of a worker.
type engine struct {
	*config
	rows
	*crew
	claim func(ctx context.Context, n int, scope func(*gorm.DB) *gorm.DB) ([]*item, error)
	log   func(ctx context.Context, format string, args ...any)

	refused *refused
	apart   map[int64]outcome // outcomes of suspects, to be stored; used by one goroutine
	source  source
	scout   chan struct{}   // for the scout: look now
	claims  atomic.Int64    // how many claims were made
	alone   func(it *item)  // notes that the handler of this job must read the row itself
	doubt   func(it *item)  // notes that the handler of this job must ask whether this process still has it
	asks    chan struct{}   // has an element for each handler that does so now
	asking  context.Context // ends with the run: then nobody waits for an answer
	turn    int             // whether suspects (0) or other jobs (1) get one more if the number of jobs to claim is odd
	unsure  bool            // a claim failed here, but the server may have executed it; used by one goroutine at a time
	failed  time.Time       // when that claim failed; zero: all its jobs are known
	base    context.Context // of handlers
	end     context.CancelCauseFunc

	stopAsking context.CancelFunc
	workers    sync.WaitGroup
}

func newEngine(ctx context.Context, c *config) *engine {
	e := &engine{config: c, crew: newCrew(c.workers, newProofs(ctx, c.lease)), refused: newRefused(c.lease), apart: map[int64]outcome{}, scout: make(chan struct{}, 1), asks: make(chan struct{}, asksMost)}
	e.base, e.end = context.WithCancelCause(context.WithoutCancel(ctx))
	e.asking, e.stopAsking = context.WithCancel(e.base)
	return e
}

func (e *engine) takes(queue string) bool { return e.queues == nil || slices.Contains(e.queues, queue) }

// inQueues is the condition on the queue, and its argument.
func (e *engine) inQueues() (args []any, condition string) {
	if e.queues == nil {
		return nil, ""
	}
	var names pgarray.Array
	for _, name := range e.queues {
		names.Text(name)
	}
	return []any{names.String()}, " AND {Queue} = ANY($1::text[])"
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
		ctx, it := e.next(e.base)
		if it == nil {
			whole = true
			return
		}
		if !it.apart && e.isUnproven(it) {
			e.doubt(it)
		}
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
		e.ended(e.judge(it, sound.Error(err)))
	}()
	err = it.handle(context.WithValue(ctx, attemptKey{}, it.shared))
}

func (e *engine) item(j *Job) *item {
	return &item{id: j.ID, claim: j.ClaimedBy, attempt: j.Attempts, most: j.MaxAttempts, level: level{j.Queue, j.Priority}, priority: j.Priority, shared: &attempt{of: e, id: j.ID}}
}

// claimsBegin is the prefix of each ClaimedBy of this run.
func (e *engine) claimsBegin() string { return e.owner + "#" }

// nextClaim is the ClaimedBy of a new claim. Its number keeps the outcome of a job from being taken for the outcome of a later attempt.
func (e *engine) nextClaim() string { return e.claimsBegin() + strconv.FormatInt(e.claims.Add(1), 36) }

// unheard returns the jobs that this run has claimed but does not hold, because the answer did not arrive.
func (e *engine) unheard(ctx context.Context) (items []*item, err error) {
	var j Job
	err = e.db.each(ctx, e.t.sql(`SELECT {ID}, {ClaimedBy}, {Attempts}, {MaxAttempts}, {Queue}, {Priority} FROM {table}
		WHERE {State} = 'running' AND starts_with({ClaimedBy}, $1) AND {ID} <> ALL($2::bigint[]) ORDER BY {Priority} DESC, {ID}`),
		[]any{e.claimsBegin(), e.heldIDs()}, []any{&j.ID, &j.ClaimedBy, &j.Attempts, &j.MaxAttempts, &j.Queue, &j.Priority}, func() { items = append(items, e.item(&j)) })
	if err != nil {
		return nil, fmt.Errorf("look for the jobs that were claimed: %w", err)
	}
	return items, nil
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
