package work

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/pgarray"
)

// item is a job that this process has claimed.
type item struct {
	id       int64
	claim    string // its ClaimedBy: unique to this claim
	attempt  int
	most     int
	level    level
	priority int
	handle   func(ctx context.Context) error
	apart    bool // its handler reads the row itself, because another row of the claim may be one that cannot be read
	shared   *attempt

	// under crew.mu
	claimed time.Time
	begun   time.Time
	cancel  context.CancelCauseFunc // of its handler's context
	over    bool                    // its outcome is known, or another process has the job
	proof   holder.Instant          // the lease counts from here
	took    time.Duration           // how long the server took to confirm it
	seen    holder.Instant          // when the server last said that this process has the job, while its row was locked
	expired bool                    // its lease ended while its handler ran
}

// crew holds the handlers of one run and the jobs of this process: those that wait for a handler, those that a handler works on, and those whose
// outcome is still to be stored.
type crew struct {
	proofs   proofs
	size     int           // how many handlers there are
	signal   chan struct{} // for the fetcher: something has changed
	finished chan struct{} // for the finisher: there are outcomes
	undone   chan struct{} // for the watch: a transaction that has completed a job was rolled back

	mu       sync.Mutex
	cond     sync.Cond // signals that a job is queued, or that the run ends
	queue    []*item   // claimed, but not begun
	asked    []*item   // to be queued again when the server has said whether this process still has them
	held     map[int64]*item
	outcomes []outcome // to be stored
	apart    int       // how many more outcomes the server has refused to store
	pace     pace
	stopping bool
}

// pace is how fast handlers are.
type pace struct {
	given   int           // how many jobs were given to a handler
	busy    int           // handlers that run
	average time.Duration // how long a handler takes
	ended   time.Time     // when the last handler ended
}

func newCrew(size int, p proofs) *crew {
	c := &crew{proofs: p, size: size, held: map[int64]*item{}, signal: make(chan struct{}, 1), finished: make(chan struct{}, 1), undone: make(chan struct{}, 1)}
	c.cond.L = &c.mu
	return c
}

// end notes that a handler has ended, and returns how long it took.
func (p *pace) end(began time.Time) (took time.Duration) {
	p.busy--
	p.ended = time.Now()
	took = p.ended.Sub(began)
	p.average += (took - p.average) / 8
	return took
}

// wants returns how many jobs to claim now.
func (c *crew) wants() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping || c.apart > outcomesMost {
		return 0
	}
	ahead := 0
	if c.pace.given > 0 {
		ahead = int(min(int64(horizon)*int64(c.size)/max(int64(c.pace.average), 1), int64(c.size*aheadMost)))
	}
	load, room := c.pace.busy+len(c.queue)+len(c.asked)+len(c.outcomes)/2, c.size+ahead // so jobs are not claimed faster than outcomes are stored
	want := room - load
	if len(c.queue) > 0 && want*2 < room {
		return 0
	}
	return even(want)
}

// even rounds limits, so that there are few different ones: each is another statement for the server.
func even(n int) int {
	step := 1
	for n/step > 16 {
		step *= 2
	}
	return max(n, 0) / step * step
}

// next waits for the next job for a handler, and returns it with a context derived from base. It returns nil when the run ends.
func (c *crew) next(base context.Context) (context.Context, *item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		for (len(c.queue) == 0 || len(c.outcomes)+c.apart > outcomesMost) && !c.stopping {
			c.cond.Wait()
		}
		if c.stopping {
			return nil, nil
		}
		it := c.queue[0]
		c.queue = c.queue[1:]
		if it.over { // lost before it was queued
			continue
		}
		if c.proofs.ranOut(it) {
			c.giveBack([]*item{it})
			continue
		}
		it.begun = time.Now()
		var ctx context.Context
		ctx, it.cancel = context.WithCancelCause(base)
		c.pace.busy++
		c.pace.given++
		poke(c.signal)
		return ctx, it
	}
}

// hold notes that this process has the jobs of a claim. sent is when the claim was sent. The jobs are queued later, when all claims of this turn
// are made. If this process still holds an earlier attempt of a job, somebody has freed the row, so that attempt has lost the job.
func (c *crew) hold(got []*item, sent holder.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, it := range got {
		if earlier := c.held[it.id]; earlier != nil {
			c.lose(earlier)
		}
		it.claimed, it.proof, it.took = time.Now(), sent, c.proofs.clock().Since(sent)
		c.held[it.id] = it
	}
}

// heldIDs is an array of the jobs that this process holds.
func (c *crew) heldIDs() string {
	var ids pgarray.Array
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.held {
		ids.Int(id)
	}
	return ids.String()
}

// add queues jobs. If the run ends, it gives them back instead.
func (c *crew) add(got []*item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		c.giveBack(got)
		return
	}
	c.queue = append(c.queue, got...)
	c.cond.Broadcast()
}

// ended queues the outcome of a handler to be stored.
func (c *crew) ended(o outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o.cancel(nil)
	o.took = c.pace.end(o.begun)
	if o.unbegun {
		c.pace.given--
	}
	if !o.over {
		o.over = true
		c.outcomes = append(c.outcomes, o)
		poke(c.finished)
	}
	poke(c.signal)
}

// batch returns outcomes to be stored together.
func (c *crew) batch() []outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(c.outcomes), outcomesMost/2)
	batch := c.outcomes[:n:n]
	c.outcomes = c.outcomes[n:]
	c.cond.Broadcast()
	return batch
}

// setApart notes how many outcomes the server has refused.
func (c *crew) setApart(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apart = n
	c.cond.Broadcast()
}

// isFull reports whether no handler runs, and none may begin because the server has refused too many outcomes.
func (c *crew) isFull() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apart > outcomesMost && c.pace.busy == 0
}

// putBack takes back outcomes that could not be stored.
func (c *crew) putBack(left []outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outcomes = append(c.outcomes, left...)
	poke(c.finished)
}

// forget removes a job from held, unless its row was claimed again since.
func (c *crew) forget(it *item) {
	if c.held[it.id] == it {
		delete(c.held, it.id)
	}
}

// lost ends an attempt whose job another process may have now.
func (c *crew) lost(it *item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose(it)
}

// lose ends the handler of an attempt, or removes the attempt from the queue. An attempt that has completed its job has nothing to lose. The caller
// holds mu.
func (c *crew) lose(it *item) {
	c.forget(it)
	if it.shared.completed.Load() {
		return
	}
	it.over = true
	if it.cancel != nil {
		it.cancel(ErrTakenOver)
	} else if i := slices.Index(c.queue, it); i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
	}
	poke(c.signal)
}

// drop removes a job whose outcome is stored.
func (c *crew) drop(it *item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(it)
	poke(c.signal)
}

// stillHeld reports whether this process still has the job, and its outcome is not known.
func (c *crew) stillHeld(it *item) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[it.id] == it && !it.over
}

// giveBack releases jobs that have not begun. The caller holds mu.
func (c *crew) giveBack(items []*item) {
	for _, it := range items {
		if !it.over {
			it.over = true
			c.outcomes = append(c.outcomes, outcome{item: it, state: ready, uncounted: true})
		}
	}
	poke(c.finished)
}

// giveBackStale releases jobs that were claimed in advance, if handlers have become slow.
func (c *crew) giveBackStale() {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := append(slices.Clip(c.asked), c.queue...)
	if len(waiting) == 0 || time.Since(waiting[0].claimed) < stale || time.Since(c.pace.ended) < stale {
		return // the statements are slow too, perhaps because the machine is slow
	}
	c.pace.average = max(c.pace.average, stale)
	c.giveBack(waiting)
	c.queue = nil
}

// idle reports whether this process has no jobs.
func (c *crew) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.held) == 0
}

// hasRoom reports whether there are handlers without a job.
func (c *crew) hasRoom() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pace.busy+len(c.queue)+len(c.asked) < c.size
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
