package work

import (
	"context"
	"slices"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
)

// proofs say until when this process may rely on its leases, by its own clocks, as in package lease. Each lease counts from the moment at which the
// last statement was sent that the server has confirmed. So a process that cannot reach the server, or was stopped, knows when others may have its
// jobs.
type proofs struct {
	clock    holder.Clock
	believed time.Duration // how long a lease is relied on: a little less than its length, because clocks do not run equally fast
}

func newProofs(ctx context.Context, lease time.Duration) proofs {
	return proofs{holder.ClockOf(ctx), lease - lease/50}
}

// remains returns how long the lease of a job may still be relied on. While a transaction is open in which the handler has called Complete, that
// transaction has locked the row. So the lease cannot be renewed, but nobody can take the job over either. Then the lease is relied on as long as
// the server keeps saying that this process has the job.
func (p proofs) remains(it *item, now holder.Instant) time.Duration {
	left := p.believed - now.Since(it.proof)
	if it.shared.open.Load() > 0 {
		left = max(left, p.believed/3-now.Since(it.seen))
	}
	return left
}

// ranOut reports whether another process may have the job.
func (p proofs) ranOut(it *item) bool { return p.remains(it, p.clock()) <= 0 }

// isUnproven reports whether the lease was confirmed so long ago that somebody may have stopped the job since.
func (c *crew) isUnproven(it *item) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waitsLong(it)
}

// waitsLong is isUnproven for a caller that holds mu. If the server took long to confirm the lease, so would the question: then the job may wait
// longer, or nothing would be left of the time that an answer is good for.
func (c *crew) waitsLong(it *item) bool {
	return c.proofs.clock().Since(it.proof) > min(max(unproven, 2*it.took), unprovenMost)
}

// hasLost reports whether another process may have the job, or it was given back.
func (c *crew) hasLost(it *item) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return it.over || it.expired || c.proofs.ranOut(it)
}

// takeUnproven takes jobs from the queue for which this process must ask, so that all are asked for together.
func (c *crew) takeUnproven() (list []*item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = slices.DeleteFunc(c.queue, func(it *item) bool {
		is := !it.apart && !it.over && c.waitsLong(it) && !c.proofs.ranOut(it)
		if is {
			list = append(list, it)
		}
		return is
	})
	c.asked = append(c.asked, list...)
	return list
}

// queueAgain puts such jobs back at the head of the queue, and gives back those that this process does not have any more.
func (c *crew) queueAgain(list []*item, has func(*item) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = slices.DeleteFunc(c.asked, func(it *item) bool { return slices.Contains(list, it) })
	var queue []*item
	for _, it := range list {
		if has(it) && !c.stopping {
			queue = append(queue, it)
		} else {
			c.giveBack([]*item{it})
		}
	}
	c.queue = append(queue, c.queue...)
	c.cond.Broadcast()
	poke(c.signal)
}

// proved notes that the server has confirmed these leases for their whole length. sent is when the statement was sent.
func (c *crew) proved(list []*item, sent holder.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, it := range list {
		if sent.Mono > it.proof.Mono {
			it.proof, it.took = sent, c.proofs.clock().Since(sent)
		}
	}
}

// saw notes that, by the server, this process still has the job, but its lease was not renewed because the row is locked.
func (c *crew) saw(it *item, sent holder.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	it.seen = sent
}

// watch ends the contexts of handlers whose leases have ended. The error of such a handler is still stored if no other process has the job by then.
func (e *engine) watch(ctx context.Context) {
	for ctx.Err() == nil {
		next, ended := e.expire()
		if ended > 0 {
			e.log(ctx, "gormlock: work: no renewal of the leases of %d jobs of %s was confirmed for %s, because the server did not answer or transactions have locked their rows: other workers may have them, and the contexts of their handlers have ended",
				ended, e.t.name, e.proofs.believed)
		}
		select {
		case <-ctx.Done():
		case <-e.undone:
		case <-time.After(next):
		}
	}
}

// expire ends the contexts of handlers whose leases have ended. It returns when to look again and how many it has ended.
func (c *crew) expire() (next time.Duration, ended int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.proofs.clock()
	next = max(c.proofs.believed/10, time.Millisecond) // look again soon even without a job that expires earlier: a claim may be answered late
	for _, it := range c.held {
		if it.cancel == nil || it.over || it.expired || it.shared.completed.Load() {
			continue
		}
		if left := c.proofs.remains(it, now); left > 0 {
			next = min(next, left)
			continue
		}
		it.expired = true
		it.cancel(ErrTakenOver)
		ended++
	}
	return next, ended
}

// hasExpired reports whether the lease of a job ended while its handler ran.
func (c *crew) hasExpired(it *item) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return it.expired
}
