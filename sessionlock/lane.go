package sessionlock

import (
	"runtime"
	"time"
)

// lane is callers that were settled together and wake each other: unlock wakes the first,
// and each wakes the next before it returns, at the latest when it has seen to what it
// found to do in unlock itself. It is made of callers that came on one processor, and
// whoever is woken runs on the processor of who woke it: so a lane stays where the memory
// of its callers is. A lane belongs to Manager.mu.
type lane struct {
	first chan struct{}
	last  *waiter
}

// takeLane puts w into the lane of this processor. Its caller must await it next, for
// others are woken after it.
func (m *Manager) takeLane(w *waiter) { w.lane = m.ownLane() }

// ownLane is the lane of this processor: a pool keeps one for each.
func (m *Manager) ownLane() *lane {
	l, ok := m.lanePool.Get().(*lane)
	if !ok {
		l = &lane{}
	}
	m.lanePool.Put(l)
	return l
}

// wakeSoon makes unlock wake w.
func (m *Manager) wakeSoon(w *waiter) {
	m.settled++
	switch l := w.lane; {
	case l == nil:
		m.heads = append(m.heads, w.done)
	case l.last == nil:
		l.first, l.last = w.done, w
		m.lanes = append(m.lanes, l)
	default:
		l.last.after, l.last = w.done, w
	}
}

// wait returns when w is settled.
func (w *waiter) wait() {
	<-w.done
	w.wakeNext()
}

// wakeNext wakes who comes after w in its lane.
func (w *waiter) wakeNext() {
	if w.after != nil {
		w.after <- struct{}{}
	}
}

// tell gives back mu while it wakes those that were settled.
func (m *Manager) tell() {
	many := m.settled >= throng
	heads, told := m.toWake(), m.told
	m.heads, m.spare, m.told, m.settled = m.spare, nil, nil, 0
	gather := many && m.home != nil && len(m.home.inflight) == 0
	m.mu.Unlock()
	for _, done := range heads {
		done <- struct{}{}
	}
	for _, do := range told {
		do()
	}
	if gather {
		// Most of them want something next, which can share a flight. It may be long before
		// this goroutine goes on.
		m.late.Reset(gatherTime)
		m.landing.Store(true)
		runtime.Gosched()
	}
	clear(heads)
	m.mu.Lock()
	m.spare = heads[:0]
}

// toWake empties the lanes and returns whom to wake. The lane of this processor is the
// last, so that it goes on here.
func (m *Manager) toWake() []chan struct{} {
	if len(m.lanes) == 0 {
		return m.heads
	}
	heads, own := m.heads, m.ownLane()
	var last chan struct{}
	for _, l := range m.lanes {
		if l == own {
			last = l.first
		} else {
			heads = append(heads, l.first)
		}
		*l = lane{}
	}
	clear(m.lanes)
	m.lanes = m.lanes[:0]
	if last != nil {
		heads = append(heads, last)
	}
	return heads
}

// landingTime is how long a flight may keep those who arrive from trying for mu. With a
// second flight behind it that may be twice as long. gatherTime is the same for a goroutine
// that lets others go first.
const (
	landingTime = 5 * time.Millisecond
	gatherTime  = time.Millisecond
)

// leave gives back mu. While a flight with many keys is about to land, and somebody is
// there to read its answer and let in those who have arrived by then, they need not try
// for mu, each for itself.
//
// Whoever sets landing sets late too.
func (m *Manager) leave() {
	if landing := m.isLanding(); landing != m.landing.Load() {
		m.landing.Store(landing)
	}
	m.mu.Unlock()
}

func (m *Manager) isLanding() bool {
	s := m.home
	if s == nil || !s.reading || len(s.inflight) == 0 {
		return false
	}
	f := s.inflight[0]
	return f.keys >= multitude && time.Since(f.sent) < landingTime
}

// overdue ends landing for a flight that does not land: what the server is not needed for
// must not wait for it.
func (m *Manager) overdue() {
	m.mu.Lock()
	if !m.closed {
		m.wg.Add(1) // Close waits for what unlock may do
		defer m.wg.Done()
	}
	if m.isLanding() {
		m.late.Reset(landingTime) // the time was that of gathering
	}
	m.unlock(nil)
}

// isOnItsOwn reports whether a caller who has arrived is to try for mu: nobody will let it
// in soon, or as many as make a flight worth sending wait to be let in.
func (m *Manager) isOnItsOwn() bool {
	return !m.landing.Load() || m.standing.Add(1) == crowd
}
