package sessionlock

import (
	"slices"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

const (
	// maxSlice is how long a session waits for a key before another key gets its turn. A statement that waits holds back
	// vacuum and CREATE INDEX CONCURRENTLY, and past the server's deadlock_timeout it would be taken for a part of a
	// deadlock with them.
	maxSlice = 800 * time.Millisecond
	minSlice = time.Millisecond
	// pollEvery is how often keys without a session to wait on are asked for again.
	pollEvery = 50 * time.Millisecond
)

// waitlist is the keys that somebody outside the process holds, and the sessions on which they wait in the server's queue.
// Keys without a session are asked for again and again.
type waitlist struct {
	keys   []*entry      // longest first
	free   []*session    // that wait for nothing and hold nothing
	pool   waiterPool    // how many there are and may be
	slice  time.Duration // how long a session waits for one key
	pollAt time.Time     // zero while no poll is due

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

// hasRoom reports whether one session more may be dialled.
func (p *waiterPool) hasRoom() bool { return p.size+p.dialing < p.limit && time.Now().After(p.retryAt) }

// enter makes e wait for somebody outside the process.
func (l *waitlist) enter(e *entry) {
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

// toTheBack ends the turn of e: the next session goes to whoever waits longest.
func (l *waitlist) toTheBack(e *entry) {
	l.leave(e)
	l.enter(e)
}

// vacate takes e off the session it waited on or was held on.
func (l *waitlist) vacate(e *entry) {
	if e.session != nil && e.session.role == wire.Waiter {
		e.session.freeAt = time.Now()
		l.free = append(l.free, e.session)
	}
	e.session = nil
}

// fill gives the free sessions to the entries that wait longest, and sees to it that the others are asked for again.
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

// dial adds a session to wait on.
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

// sessionLost takes a session out that has ended.
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

// poll asks for the keys that have no session to wait on, in one statement. There is a home.
func (l *waitlist) poll() {
	l.fill() // a session to wait on may be dialled again by now
	for _, e := range l.keys {
		if e.session == nil && !e.question.polling && e.queue.first != nil {
			e.question.polling, e.mode = true, e.queue.first.mode
			l.conns.home.ask(wire.Try.For(e.id, e.mode), e)
		}
	}
}
