package sessionlock

import (
	"context"
	"time"
)

// Callers read their own answers, so they need not be woken. The watcher reads while batches follow one another. It also
// reads when nobody has sent anything for a while, to notice the end of the session.

// readAnswer sends the request of w. Then it reads until w has its answer, if nobody else reads the session on which the
// answer will arrive. It is called with mu held and returns without it.
func (c *core) readAnswer(ctx context.Context, w *waiter) {
	c.letIn()
	for s := unreadSession(w); s != nil && ctx.Err() == nil; s = unreadSession(w) {
		w.chain = nil // a goroutine that reads must not be woken by a chain
		s.reading = true
		c.unlock(s)
		c.readFor(ctx, s)
		if len(s.sent) > 0 {
			s.wake()
		}
	}
	c.unlock(nil)
}

// unreadSession returns the session on which the answer of w will arrive, if nobody reads it.
func unreadSession(w *waiter) *session {
	if w.finished || w.entry == nil || w.entry.state != asking && w.entry.state != unlocking {
		return nil
	}
	if s := w.entry.session; s != nil && s.dead == nil && !s.reading {
		return s
	}
	return nil
}

// readFor reads for a caller, which leaves when ctx ends.
func (c *core) readFor(ctx context.Context, s *session) {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, s.conn.Interrupt)
		defer stop()
	}
	c.read(ctx, s)
}

// watch reads s while no caller does, until s is dead.
func (c *core) watch(s *session) {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	woken := false
	c.mu.Lock()
	for s.dead == nil {
		quiet := time.Since(s.sentAt) >= idle
		if !s.reading && (woken && len(s.sent) > 0 || quiet) {
			s.reading = true
			c.unlock(s)
			c.read(context.Background(), s)
			woken = len(s.sent) > 0 // read on: further answers are on their way
			continue
		}
		c.unlock(nil)
		timer.Reset(idle)
		select {
		case <-s.watcher:
			woken = true
		case <-timer.C:
		case <-s.gone:
		}
		c.mu.Lock()
	}
	c.unlock(nil)
}

// read reads until a batch has been answered, ctx ended or the session died. The caller has set s.reading and does not
// hold mu; read returns with mu held and s.reading false.
func (c *core) read(ctx context.Context, s *session) {
	var b *batch
	for {
		message, err := s.conn.Receive()
		if err == nil && message == nil && ctx.Err() == nil {
			continue // an interrupt of a caller that has left by now
		}
		if err == nil && message != nil {
			if b == nil {
				if b = c.oldestBatch(s); b == nil {
					continue
				}
			}
			var done bool
			if done, err = b.take(message); err == nil && !done {
				continue
			}
		}
		c.mu.Lock()
		s.reading = false
		switch {
		case err != nil:
			c.conns.lose(s, err)
		case message != nil && s.dead == nil:
			c.answered(s, b)
		}
		return
	}
}

// oldestBatch returns the batch whose answer comes next.
func (c *core) oldestBatch(s *session) *batch {
	c.mu.Lock()
	defer c.unlock(nil)
	if len(s.sent) == 0 {
		return nil
	}
	return s.sent[0]
}
