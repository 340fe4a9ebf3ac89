package sessionlock

import (
	"slices"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

const (
	// maxSlice is how long a session waits for a key before another key gets its turn. A statement that waits delays
	// vacuum and CREATE INDEX CONCURRENTLY. After the server's deadlock_timeout, the server would see a deadlock between
	// it and the latter.
	maxSlice = 800 * time.Millisecond
	minSlice = time.Millisecond
	// pollEvery is the pause between two tries for keys that have no session to wait on.
	pollEvery = 50 * time.Millisecond
)

// waitlist has the keys that other processes hold, and the sessions that wait for them in the server's queue. Keys
// without a session are tried again and again.
type waitlist struct {
	keys   []*entry      // the one that has waited longest is first
	free   []*session    // that wait for nothing and hold nothing
	pool   waiterPool    // how many there are and may be
	slice  time.Duration // how long a session waits for one key
	pollAt time.Time     // zero: no poll is due

	conns  *connections
	upkeep *upkeep
}

// waiterPool is how many sessions there are to wait on.
type waiterPool struct {
	limit   int // see MaxWaiters
	size    int
	dialing int       // not counted in size
	retryAt time.Time // no dialling before
}

// hasRoom reports whether one more session may be opened.
func (p *waiterPool) hasRoom() bool { return p.size+p.dialing < p.limit && time.Now().After(p.retryAt) }

// enter makes e wait for another process.
func (l *waitlist) enter(e *entry) {
	if e.state != waiting {
		e.since, e.sliced = time.Now(), false
	}
	e.state, e.session = waiting, nil
	l.keys = append(l.keys, e)
	l.fill()
}

// leave is a no-op for an entry that is not on the list.
func (l *waitlist) leave(e *entry) {
	if e.state != waiting {
		return
	}
	if i := slices.Index(l.keys, e); i >= 0 {
		l.keys = slices.Delete(l.keys, i, i+1)
	}
}

// toTheBack ends the turn of e: the next session goes to the key that has waited longest.
func (l *waitlist) toTheBack(e *entry) {
	l.leave(e)
	e.sliced = true
	l.enter(e)
}

// vacate takes e off the session on which it waited or was held.
func (l *waitlist) vacate(e *entry) {
	if e.session != nil && e.session.role == wire.Waiter {
		e.session.freeAt = time.Now()
		l.free = append(l.free, e.session)
	}
	e.session = nil
}

// fill gives the free sessions to the entries that have waited longest, and makes poll try the others.
func (l *waitlist) fill() {
	if l.conns.life.closed {
		return
	}
	left := 0
	for _, e := range l.keys {
		if e.session != nil || e.question.polling || e.queue.first == nil {
			continue
		}
		if len(l.free) == 0 {
			left++
			continue
		}
		s := l.free[len(l.free)-1]
		l.free = l.free[:len(l.free)-1]
		e.session, e.mode = s, e.queue.first.mode
		s.wait(e, l.slice)
	}
	for ; left > l.pool.dialing && l.pool.hasRoom(); l.pool.dialing++ {
		l.conns.life.run(l.dial)
	}
	if left > 0 {
		l.pollSoon()
	}
}

// dial opens a session to wait on.
func (l *waitlist) dial() {
	s, err := l.conns.dial(wire.Waiter)
	l.conns.mu.Lock()
	defer l.conns.mu.Unlock()
	l.pool.dialing--
	if err != nil {
		l.conns.dialError = err
		l.pool.retryAt = time.Now().Add(l.conns.dialer.Heartbeat)
	} else if l.conns.add(s) {
		l.conns.dialError = nil
		l.pool.size++
		l.free = append(l.free, s)
		s.freeAt = time.Now()
	}
	l.fill()
}

// sessionLost removes a session that has ended.
func (l *waitlist) sessionLost(s *session) {
	l.pool.size--
	l.free = slices.DeleteFunc(l.free, func(other *session) bool { return other == s })
}

func (l *waitlist) pollSoon() {
	if l.pollAt.IsZero() {
		l.pollAt = time.Now().Add(holder.Jitter(pollEvery))
		l.upkeep.soon()
	}
}

// poll asks for the keys that have no session to wait on, in one statement. There must be a home.
func (l *waitlist) poll() {
	l.fill() // a session to wait on may be opened again by now
	for _, e := range l.keys {
		if e.session == nil && !e.question.polling && e.queue.first != nil {
			e.question.polling, e.mode = true, e.queue.first.mode
			l.conns.home.ask(wire.Try.For(e.id, e.mode), e)
		}
	}
}
