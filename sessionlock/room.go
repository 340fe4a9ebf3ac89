package sessionlock

import "time"

const (
	// maxSlice is how long a session waits for a key before another key gets its turn.
	// A statement that waits holds back vacuum and CREATE INDEX CONCURRENTLY, and past
	// the server's deadlock_timeout it would be taken for a part of a deadlock with them.
	maxSlice = 800 * time.Millisecond
	minSlice = time.Millisecond
	// pollEvery is how often keys without a session to wait on are asked for again.
	pollEvery = 50 * time.Millisecond
	// keepFree is how long a session that waits for nothing is kept.
	keepFree = 10 * time.Second
)

// enterRoom makes e wait for somebody outside the process.
func (m *Manager) enterRoom(e *entry) {
	e.state, e.s = waiting, nil
	m.room = append(m.room, e)
	m.fillSlots()
}

// leaveRoom is a no-op for an entry that is not in the room.
func (m *Manager) leaveRoom(e *entry) {
	if e.state != waiting {
		return
	}
	for i, other := range m.room {
		if other == e {
			m.room = append(m.room[:i], m.room[i+1:]...)
			return
		}
	}
}

// toTheBack ends the turn of e: the next session goes to whoever waits longest.
func (m *Manager) toTheBack(e *entry) {
	m.leaveRoom(e)
	m.enterRoom(e)
}

// vacate takes e off the session it waited on or was held on.
func (m *Manager) vacate(e *entry) {
	if e.s != nil && e.s.role == waits {
		e.s.freeSince = time.Now()
		m.free = append(m.free, e.s)
	}
	e.s = nil
}

// fillSlots gives the sessions that wait for nothing to the entries that wait longest,
// and sees to it that the others are asked for again.
func (m *Manager) fillSlots() {
	if m.closed {
		return
	}
	left := 0
	for _, e := range m.room {
		if e.s != nil || e.polling || e.queue.first == nil {
			continue
		}
		if len(m.free) == 0 {
			left++
			continue
		}
		s := m.free[len(m.free)-1]
		m.free = m.free[:len(m.free)-1]
		e.s, e.mode = s, e.queue.first.mode
		s.waitFor = e
		m.touch(s)
	}
	for ; left > m.dialing && m.extras+m.dialing < m.config.maxWaiters && time.Now().After(m.dialAfter); m.dialing++ {
		m.wg.Go(m.dialWaiter)
	}
	if left > 0 {
		m.pollSoon()
	}
}

func (m *Manager) pollSoon() {
	if m.pollAt.IsZero() {
		m.pollAt = time.Now().Add(jitter(pollEvery))
		m.tendSoon()
	}
}

// pollRoom asks for the keys that have no session to wait on, in one statement, and
// whether others want those that are held together.
func (m *Manager) pollRoom() {
	m.pollAt = time.Time{}
	if m.home == nil {
		return // reconnect polls
	}
	m.wonderAgain()
	m.fillSlots() // a session to wait on may be dialled again by now
	for _, e := range m.room {
		if e.s == nil && !e.polling && e.queue.first != nil {
			e.polling, e.mode = true, e.queue.first.mode
			m.home.push(try.forLock(e.id, e.mode), e)
		}
	}
}

// sliceFor is how long a session waits for e: no longer than anybody wants e.
func (m *Manager) sliceFor(e *entry, now time.Time) time.Duration {
	var last time.Time
	for w := e.queue.first; w != nil; w = w.next {
		if w.deadline.IsZero() {
			return m.slice
		}
		if w.deadline.After(last) {
			last = w.deadline
		}
	}
	return min(m.slice, max(minSlice, last.Sub(now)))
}

// dialWaiter adds a session to wait on.
func (m *Manager) dialWaiter() {
	s, err := m.dial(m.ctx, waits)
	m.mu.Lock()
	m.dialing--
	if err != nil {
		m.dialError = err
		m.dialAfter = time.Now().Add(m.config.heartbeat)
	} else if m.adopt(s) {
		m.dialError = nil
		m.extras++
		m.free = append(m.free, s)
		s.freeSince = time.Now()
	}
	m.fillSlots()
	m.unlock(nil)
}
