package sessionlock

import (
	"context"
	"runtime"
	"time"
)

// manyWoken is how many callers answered at once are worth gathering again before the next batch.
const manyWoken = 4

// Lock takes the mutex, and Unlock gives it back, for parts that have goroutines of their own.
func (c *core) Lock() { c.mu.Lock() }

// Unlock is unlock for those who read no session.
func (c *core) Unlock() { c.unlock(nil) }

// unlock lets in those who arrived, gives back mu, wakes those that got their answer while it was held and sends what became
// due. The session reader is read by the caller itself; other sessions that nobody reads are left to their watchers.
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
				return // whoever has mu lets them in
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

// unlockAside is unlock for those who cannot wait for a write.
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

// wake gives back mu while it wakes those that have their answer, and makes the calls of the outbox.
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
		// Most of them want something next, which can share a batch. It may be long before this goroutine goes on.
		c.inbox.timer.Reset(gatherTime)
		c.inbox.combining.Store(true)
		runtime.Gosched()
	}
	clear(heads)
	c.mu.Lock()
	c.wakeups.reuse(heads)
}

// leave gives back mu. While a batch with many keys is about to be answered, and somebody is there to read that and let in
// those who have arrived by then, they need not try for mu, each for itself.
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

// stopCombining ends combining for a batch that is not answered: what the server is not needed for must not wait for it.
func (c *core) stopCombining() {
	c.mu.Lock()
	if !c.life.closed {
		c.life.tasks.Add(1) // Close waits for what unlock may do
		defer c.life.tasks.Done()
	}
	if c.isCombining() {
		c.inbox.timer.Reset(combiningTime) // the time was that of gathering
	}
	c.unlock(nil)
}

// submit puts w into the inbox and awaits its answer, as await does. It joins the chain of this processor, so it must be
// awaited: others are woken after it.
func (c *core) submit(ctx context.Context, w *waiter) error {
	w.chain = c.chains.get()
	c.inbox.put(w)
	return c.await(ctx, w)
}

// await returns nil when w, which is in the inbox, has its answer, else the error of ctx. A caller whose answer nobody reads
// does so itself, if it tried for mu, else the watcher.
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
	if w.entry != nil { // else a token may be on its way to it
		w.reuse()
	}
	return ctx.Err()
}
