package work

import (
	"context"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
)

// proofs say until when this process may rely on its leases, by its own clocks, as in package lease: each lease counts from the sending of the
// last statement that the server has confirmed. So a process that cannot reach the server, or was stopped, knows when others may have its jobs.
type proofs struct {
	clock    holder.Clock
	believed time.Duration // how long a lease is relied upon: a little less than its length, because clocks do not run equally fast
}

func newProofs(ctx context.Context, lease time.Duration) proofs {
	return proofs{holder.ClockOf(ctx), lease - lease/50}
}

// remains is how long the lease of a job may still be relied upon.
func (p proofs) remains(it *item, now holder.Instant) time.Duration {
	return p.believed - now.Since(it.proof)
}

// ranOut reports whether another process may have the job.
func (p proofs) ranOut(it *item) bool { return p.remains(it, p.clock()) <= 0 }

// proved notes that the server has confirmed the leases of jobs for their whole length, by a statement that was sent at a time.
func (c *crew) proved(list []*item, sent holder.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, it := range list {
		if sent.Mono > it.proof.Mono {
			it.proof = sent
		}
	}
}

// seen notes that the server has the job as that of this process, and could not renew its lease, because its row is locked. While it is, nobody
// takes it over, so its handler goes on for a third of a lease. Another job does not begin without a lease.
func (c *crew) seen(it *item, sent holder.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ago := c.proofs.believed * 2 / 3
	sent.Mono, sent.Wall = sent.Mono-ago, sent.Wall-ago
	if !it.begun.IsZero() && sent.Mono > it.proof.Mono {
		it.proof = sent
	}
}

// watch ends the contexts of handlers whose leases have ended. Their errors are stored if no other process has the job by then.
func (e *engine) watch(ctx context.Context) {
	for ctx.Err() == nil {
		next, ended := e.expire()
		if ended > 0 {
			e.log(ctx, "gormlock: work: no renewal of the leases of %d jobs of %s was confirmed for %s: other workers may have them, and the contexts of their handlers have ended",
				ended, e.t.name, e.proofs.believed)
		}
		rest(ctx, next)
	}
}

// expire ends contexts, and returns when to look again and how many it has ended.
func (c *crew) expire() (next time.Duration, ended int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.proofs.clock()
	next = max(c.proofs.believed/10, time.Millisecond) // a claim may be answered late
	for _, it := range c.held {
		if it.cancel == nil || it.over || it.expired {
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

// hasExpired reports whether the lease of a job has ended while its handler ran.
func (c *crew) hasExpired(it *item) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return it.expired
}
