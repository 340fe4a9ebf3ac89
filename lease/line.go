package lease

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstPoll   = 10 * time.Millisecond
	longestPoll = 250 * time.Millisecond
	// heardPoll is how often those ask again who are woken by a listener.
	heardPoll = 2 * time.Second
)

// waiter stands in line for a key. Only the first of a line asks the database.
type waiter struct {
	first chan struct{} // closed when it is the first
	woken chan struct{} // gets a value when it is worth asking again
}

// join puts a waiter at the end of the line for a key.
func (m *Manager) join(at place) *waiter {
	w := &waiter{first: make(chan struct{}), woken: make(chan struct{}, 1)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.lines[at]) == 0 {
		close(w.first)
	}
	m.lines[at] = append(m.lines[at], w)
	return w
}

// leave takes a waiter out of the line.
func (m *Manager) leave(at place, w *waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	line := m.lines[at]
	for i := range line {
		if line[i] != w {
			continue
		}
		line = append(line[:i], line[i+1:]...)
		if i == 0 && len(line) > 0 {
			close(line[0].first)
		}
		break
	}
	if len(line) == 0 {
		delete(m.lines, at)
		return
	}
	m.lines[at] = line
}

// wake makes the first of a line ask again. It is called with mu held.
func (m *Manager) wake(at place) {
	if line := m.lines[at]; len(line) > 0 {
		select {
		case line[0].woken <- struct{}{}:
		default:
		}
	}
}

// await waits until it is worth asking again for the n-th time: at a release that is heard
// of, when the holder's lease runs out, or after a while.
func (m *Manager) await(ctx context.Context, w *waiter, n int, ref *refusal) error {
	most := longestPoll
	if ref.marked {
		most = heardPoll
	}
	wait := most
	if !ref.marked && n < 10 {
		wait = min(firstPoll<<n, most)
	}
	if ref.remains > 0 {
		wait = min(wait, ref.remains)
	}
	timer := time.NewTimer(jitter(wait) + time.Millisecond)
	defer timer.Stop()
	select {
	case <-w.woken:
	case <-timer.C:
	case <-m.ctx.Done():
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// pause waits for d, or until ctx or the manager ends.
func (m *Manager) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(jitter(d))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-m.ctx.Done():
	}
}

// jitter is d or up to a quarter more, so that processes do not march in step.
func jitter(d time.Duration) time.Duration { return d + rand.N(d/4+1) }
