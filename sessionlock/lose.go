package sessionlock

import (
	"errors"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/observe"
)

// lose ends a session. Its holders are told under mu, before anybody can ask for the
// keys again; what was on its way is asked again, elsewhere.
func (m *Manager) lose(s *session, cause error) {
	if s.dead != nil {
		return
	}
	m.end(s, cause)
	if s.role == waits {
		m.extras--
		m.free = remove(m.free, s)
	}
	if s == m.home {
		m.home = nil
		if !m.closed {
			m.wg.Go(m.reconnect)
		}
	}
	if s.role == numbers {
		m.loseNumbers(s, cause)
		return
	}
	for _, e := range m.ledger {
		if e.wondering && s.role == home {
			e.wondering, m.curious = false, true
		}
		if e.s == s || e.polling && s.role == home {
			m.loseEntry(e, cause)
		}
	}
	m.fillSlots()
}

// end closes the connection of s without a word to the server.
func (m *Manager) end(s *session, cause error) {
	s.dead = cause
	close(s.gone)
	m.sessions = remove(m.sessions, s)
	polite := !s.writing && (errors.Is(cause, ErrClosed) || errors.Is(cause, errUnused))
	m.told = append(m.told, func() { hangUp(s.conn, polite) })
	if s.farewell {
		m.farewell(s)
	}
}

func (m *Manager) loseEntry(e *entry, cause error) {
	e.torn = true
	switch e.state {
	case held:
		for l := e.holder; l != nil; l = e.holder {
			m.forget(l)
			m.loseLock(l, cause)
		}
	case unlocking:
		if w := e.releaser; w != nil {
			e.releaser = nil
			m.settle(w, &lockError{key: w.gives.key, state: ErrLost, cause: cause})
		}
	case waiting:
		e.polling, e.s = false, nil
		if e.queue.first == nil {
			m.drop(e)
		}
		return
	case asking:
	}
	e.s = nil
	m.next(e)
}

func (m *Manager) loseLock(l *Lock, cause error) {
	err := &lockError{key: l.key, state: ErrLost, cause: cause}
	l.err = err
	if l.lost == nil {
		l.lost = make(chan struct{})
	}
	close(l.lost)
	l.unbind(err)
	if l.told {
		e := l.event(observe.Lost, err)
		m.told = append(m.told, func() { m.observe(m.ctx, e) })
	}
}

// errSilent says that nothing proves any more that a session lives.
var errSilent = errors.New("the server has not answered")

// proven reports whether the last proof that s lives is recent enough. The wall clock
// is asked too: the other one stands still while the machine sleeps.
func (m *Manager) proven(s *session, now time.Time) bool {
	age := max(now.Sub(s.proof), now.Round(0).Sub(s.proof.Round(0)))
	return age < m.patience()
}

// patience is how long a session is believed after the last proof that it lives.
func (m *Manager) patience() time.Duration { return 3 * m.config.heartbeat }

func (m *Manager) loseSilent(s *session) {
	m.lose(s, fmt.Errorf("%w for %s", errSilent, m.patience()))
}

func remove(sessions []*session, s *session) []*session {
	for i, other := range sessions {
		if other == s {
			return append(sessions[:i], sessions[i+1:]...)
		}
	}
	return sessions
}
