package sessionlock

import (
	"context"
	"runtime"
	"time"
)

// manyWoken is the number of woken callers from which it is worth waiting for their next requests before the next batch.
const manyWoken = 4

// Lock and Unlock lock and unlock the mutex, for parts that have goroutines of their own.
func (c *core) Lock() { c.mu.Lock() }

// Unlock is unlock for goroutines that read no session.
func (c *core) Unlock() { c.unlock(nil) }

// unlock serves the callers in the inbox, unlocks mu, wakes the callers that got their answer, and sends what is due. The calling goroutine itself
// reads the answers of the session reader. If nobody reads another session, its watcher does.
func (c *core) unlock(reader *session) {
	for {
		c.letIn()
		if c.wakeups.count+len(c.outbox.calls) > 0 {
			c.wake()
		}
		s, b := c.outbox.next()
		if b != nil && b.keys >= combinedKeys {
			c.inbox.timer.Reset(combiningTime)
		}
		c.leave()
		if b == nil {
			if c.inbox.isEmpty() || !c.mu.TryLock() {
				return // the goroutine that has mu serves them
			}
			continue
		}
		err := s.conn.Write(b.encode)
		c.mu.Lock()
		s.writing = false
		if err != nil {
			c.conns.lose(s, err)
			continue
		}
		if !s.reading && s != reader {
			s.wake()
		}
		c.outbox.add(s)
	}
}

// unlockAside is unlock for goroutines that must not wait for a write.
func (c *core) unlockAside() {
	busy := len(c.outbox.sessions)+c.wakeups.count+len(c.outbox.calls) > 0
	c.leave()
	if busy || !c.inbox.isEmpty() {
		c.life.run(func() {
			c.mu.Lock()
			c.unlock(nil)
		})
	}
}

// wake unlocks mu while it wakes the callers that have their answer, and makes the calls of the outbox.
func (c *core) wake() {
	gather := c.wakeups.count >= manyWoken && c.conns.home != nil && len(c.conns.home.sent) == 0
	heads, calls := c.wakeups.takeAll(), c.outbox.takeCalls()
	c.mu.Unlock()
	for _, done := range heads {
		done <- struct{}{}
	}
	for _, call := range calls {
		call()
	}
	if gather {
		// Most of them have another request soon, which can share a batch. This goroutine may not run again for long.
		c.inbox.timer.Reset(gatherTime)
		c.inbox.combining.Store(true)
		runtime.Gosched()
	}
	clear(heads)
	c.mu.Lock()
	c.wakeups.reuse(heads)
}

// leave unlocks mu. If a batch with many keys will soon be answered, the goroutine that reads the answer can serve all
// callers that have arrived until then, so new callers need not try to lock mu.
func (c *core) leave() {
	c.inbox.combine(c.isCombining())
	c.mu.Unlock()
}

func (c *core) isCombining() bool {
	s := c.conns.home
	if s == nil || !s.reading || len(s.sent) == 0 {
		return false
	}
	b := s.sent[0]
	return b.keys >= combinedKeys && time.Since(b.sentAt) < combiningTime
}

// stopCombining ends combining for a batch that has no answer yet: requests that do not need the server must not wait for
// it.
func (c *core) stopCombining() {
	c.mu.Lock()
	if !c.life.closed {
		c.life.tasks.Add(1) // Close waits for the unlock below
		defer c.life.tasks.Done()
	}
	if c.isCombining() {
		c.inbox.timer.Reset(combiningTime) // the timer was set for gathering
	}
	c.unlock(nil)
}

// submit puts w into the inbox and waits for its answer, as await does. w joins the chain of this processor, so it must
// be awaited: it wakes others.
func (c *core) submit(ctx context.Context, w *waiter) error {
	w.chain = c.chains.get()
	c.inbox.put(w)
	return c.await(ctx, w)
}

// await returns nil when w, which is in the inbox, has its answer, or the error of ctx. If nobody reads the answers of
// its session, the caller reads them if it has tried to lock mu; otherwise the watcher does.
func (c *core) await(ctx context.Context, w *waiter) error {
	if c.inbox.triesItself() && c.mu.TryLock() {
		c.readAnswer(ctx, w)
	}
	if ctx.Done() == nil {
		w.wait()
		return nil
	}
	select {
	case <-w.done:
		w.wakeNext()
		return nil
	default:
	}
	select {
	case <-w.done:
		w.wakeNext()
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	c.letIn()
	if w.finished {
		c.unlock(nil)
		w.wait()
		return nil
	}
	c.ledger.abandon(w)
	c.unlock(nil)
	if w.entry != nil { // otherwise its token may be on its way
		w.reuse()
	}
	return ctx.Err()
}
