package sessionlock

import "context"

// arrive queues a waiter for whoever holds mu, or holds it next. Callers do not wait for
// mu themselves: when many are answered at once most of them want something next, and
// each would be put to sleep and woken once more.
func (m *Manager) arrive(w *waiter) {
	for {
		w.earlier = m.arrivals.Load()
		if m.arrivals.CompareAndSwap(w.earlier, w) {
			return
		}
	}
}

// letIn handles those who arrived, in the order they came. Every way to give mu back
// looks for more afterwards.
func (m *Manager) letIn() {
	if m.arrivals.Load() == nil {
		return // Swap would take the cache line from those who arrive
	}
	last := m.arrivals.Swap(nil)
	m.standing.Store(0)
	var first *waiter
	for last != nil {
		last, last.earlier, first = last.earlier, first, last
	}
	for first != nil {
		w := first
		first, w.earlier = w.earlier, nil
		switch {
		case w.gives != nil:
			m.startRelease(w)
		case m.closed:
			m.refuse(w, ErrClosed, nil)
		case w.issuing != nil:
			m.issues = append(m.issues, w.issuing)
			m.callIssuer()
		default:
			m.acquire(w)
		}
	}
}

// await returns nil when w, which has arrived, is settled, else the error of ctx. A
// caller whose answer nobody reads does so itself, if it tried for mu, else the watcher.
func (m *Manager) await(ctx context.Context, w *waiter) error {
	if m.isOnItsOwn() && m.mu.TryLock() {
		m.readAnswer(ctx, w)
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
	m.mu.Lock()
	m.letIn()
	if w.settled {
		m.unlock(nil)
		w.wait()
		return nil
	}
	m.abandon(w)
	m.unlock(nil)
	if w.e != nil { // else a token may be on its way to it
		w.reuse()
	}
	return ctx.Err()
}

// readAnswer sends what w asks for and reads, as long as nobody else reads the session on
// which w's answer will arrive. It is called with mu held and returns without.
func (m *Manager) readAnswer(ctx context.Context, w *waiter) {
	m.letIn()
	for s := m.readable(w); s != nil && ctx.Err() == nil; s = m.readable(w) {
		w.lane = nil // nobody is to wait for one who reads
		s.reading = true
		m.unlock(s)
		m.readFor(ctx, s)
		if len(s.inflight) > 0 {
			s.wake()
		}
	}
	m.unlock(nil)
}

// readFor is read for a caller, who leaves when ctx ends.
func (m *Manager) readFor(ctx context.Context, s *session) {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, s.interrupt)
		defer stop()
	}
	m.read(ctx, s)
}

// readable is the session on which w's answer will arrive and that nobody reads.
func (m *Manager) readable(w *waiter) *session {
	if w.settled || w.e == nil || w.e.state != asking && w.e.state != unlocking {
		return nil
	}
	if s := w.e.s; s != nil && s.dead == nil && !s.reading {
		return s
	}
	return nil
}
