package sessionlock

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// state is where an entry is between nobody of this process wanting a key and
// somebody holding it. See the diagram in the package comment.
type state uint8

const (
	asking    state = iota // a try is on its way, or will be when there is a session
	waiting                // somebody else holds it: in the room
	held                   // by holders of this process, on a session
	unlocking              // on its way back to the server
)

// maxHandOvers is how often a key goes from holder to holder inside the process before
// the server, and so other processes, get it again.
const maxHandOvers = 16

// entry is a key that somebody of this process holds or wants. It leaves the ledger
// when nobody does and the server has it back. All fields but id belong to
// Manager.mu.
type entry struct {
	id    lockID
	state state
	mode  mode     // that is asked for, or held
	s     *session // that was asked, holds it or waits for it; nil while there is none

	holder    *Lock // the first of a list, by Lock.next
	holders   int
	queue     queue
	handOvers int
	freeUntil time.Time // until when hand-overs are not counted: nobody else wanted it
	wondering bool      // the question whether anybody else wants it is on its way
	releaser  *waiter   // who is told when the server has it back

	polling bool // waiting, and a try is on its way
	torn    bool // it was on its way when a session ended, whose writer may still read it
	refused bool // the answer that is being read says no
	retries int  // how often asking failed with an error
	failure *pgconn.PgError
}

// acquire puts a waiter in line for its key. It is settled, now or later, by exactly
// one of grant and refuse.
func (m *Manager) acquire(w *waiter) {
	e := m.ledger[w.id]
	if e == nil {
		if len(m.ledger) >= m.maxLocks {
			m.settle(w, &lockError{key: w.key, state: ErrTooManyLocks, detail: fmt.Sprintf("the manager has %d, see MaxLocks", m.maxLocks)})
			return
		}
		e = m.newEntry(w)
		m.ledger[w.id] = e
		w.e = e
		e.queue.push(w)
		m.ask(e)
		return
	}
	w.e = e
	if e.state == held && !m.proven(e.s, time.Now()) {
		m.loseSilent(e.s) // else w could be given what the server gave to somebody else
		m.acquire(w)
		return
	}
	switch {
	case e.state == held && e.mode == shared && w.mode == shared && !e.queue.wants(exclusive):
		e.queue.push(w)
		m.join(e)
	case w.try && (e.state == held || e.state == waiting && (!e.polling || e.queue.first != nil)):
		m.refuse(w, ErrNotAcquired, nil)
	default:
		w.late = e.polling || e.state == asking && e.s != nil
		e.queue.push(w)
	}
}

// ask sends a try for the first in line.
func (m *Manager) ask(e *entry) {
	e.state, e.mode, e.s, e.handOvers, e.freeUntil = asking, e.queue.first.mode, m.home, 0, time.Time{}
	if e.s != nil {
		e.s.push(try.forLock(e.id, e.mode), e)
	}
}

// granted is the server's yes to a try or a wait on session s.
func (m *Manager) granted(e *entry, s *session) {
	m.leaveRoom(e)
	e.state, e.s, e.polling, e.retries = held, s, false, 0
	m.serve(e)
}

// serve gives a key that s holds for nobody to those first in line, or back.
func (m *Manager) serve(e *entry) {
	for w := e.queue.first; w != nil && w.mode == e.mode; w = e.queue.first {
		e.queue.remove(w)
		m.grant(e, w)
		if e.mode == exclusive {
			break
		}
	}
	if e.holders == 0 {
		m.giveBack(e)
		return
	}
	m.refuseTries(e, false)
}

// denied is the server's no to a try. It says nothing to those who came after the try
// was sent; where nobody waits who would go first, they are asked for again.
func (m *Manager) denied(e *entry) {
	e.polling, e.retries = false, 0
	again := e.queue.triesOnly()
	m.refuseTries(e, again)
	switch {
	case e.queue.first == nil:
		m.drop(e)
	case again:
		m.leaveRoom(e)
		m.ask(e)
	case e.state == waiting:
		m.pollSoon()
	default:
		m.enterRoom(e)
	}
}

// refuseTries answers those who do not wait, but not those of them who came late if
// they are spared.
func (m *Manager) refuseTries(e *entry, spareLate bool) {
	for w := e.queue.first; w != nil; {
		next := w.next
		if w.try && (!spareLate || !w.late) {
			e.queue.remove(w)
			m.refuse(w, ErrNotAcquired, nil)
		}
		w.late = false
		w = next
	}
}

// release takes l out of the ledger and settles w when the server, or the next in
// line, has the key.
func (m *Manager) release(l *Lock, w *waiter) {
	e := l.e
	m.forget(l)
	next := e.queue.first
	switch {
	case e.holders > 0:
		m.settle(w, nil)
	case next != nil && next.mode == e.mode && e.mode == exclusive && !next.fair && e.handOvers < maxHandOvers:
		e.handOvers++
		m.settle(w, nil)
		m.serve(e)
	default:
		e.releaser = w
		m.giveBack(e)
	}
}

// forget takes l off the list of holders.
func (m *Manager) forget(l *Lock) {
	e := l.e
	for at := &e.holder; *at != nil; at = &(*at).next {
		if *at == l {
			*at = l.next
			break
		}
	}
	l.next, l.e = nil, nil
	e.holders--
}

func (m *Manager) giveBack(e *entry) {
	e.state = unlocking
	e.s.push(unlock.forLock(e.id, e.mode), e)
}

// unlocked is the answer to unlock: whether the lock was held until then.
func (m *Manager) unlocked(e *entry, held bool) {
	if w := e.releaser; w != nil {
		e.releaser = nil
		if held {
			m.settle(w, nil)
		} else {
			m.settle(w, &lockError{key: w.gives.key, state: ErrLost, detail: "the server did not hold it"})
		}
	}
	m.vacate(e)
	m.next(e)
	m.fillSlots()
}

// next asks again for those in line, or drops the entry.
func (m *Manager) next(e *entry) {
	if e.queue.first == nil {
		m.drop(e)
		return
	}
	m.ask(e)
}

// drop takes an entry out of the ledger that nobody wants and no session holds.
//
// The entry is used again. Nobody has it any more: a waiter that is not settled is in
// its queue or its releaser, a holder on its list, and what a session was asked is
// answered, all of which would have kept it; but for the question whether somebody else
// wants it, and what was asked of a session that ended.
func (m *Manager) drop(e *entry) {
	m.leaveRoom(e)
	delete(m.ledger, e.id)
	if len(m.entries) < maxKeys && !e.wondering && !e.torn {
		*e = entry{}
		m.entries = append(m.entries, e)
	}
}

// newEntry is an entry for the key of w.
func (m *Manager) newEntry(w *waiter) *entry {
	var e *entry
	if n := len(m.entries); n > 0 {
		e = m.entries[n-1]
		m.entries = m.entries[:n-1]
	} else {
		e = &entry{}
	}
	e.id = w.id
	return e
}

// abandon takes a waiter out of line whose caller went away. What is on its way goes
// on, and goes back when it arrives for nobody.
func (m *Manager) abandon(w *waiter) {
	e := w.e
	w.settled = true
	if e == nil {
		return
	}
	if e.releaser == w {
		e.releaser = nil
		return
	}
	e.queue.remove(w)
	switch {
	case e.queue.first == nil:
		if e.s == nil && !e.polling {
			m.drop(e)
		}
	case e.state == held && e.mode == shared:
		m.join(e) // those behind may have waited for this one only
	}
}

// grant makes w a holder.
func (m *Manager) grant(e *entry, w *waiter) {
	l := w.newLock
	w.newLock = nil
	l.e, l.s, l.next = e, e.s, e.holder
	if m.config.observer != nil {
		l.since = time.Now().UnixNano()
	}
	e.holder = l
	e.holders++
	w.lock = l
	m.settle(w, nil)
}

func (m *Manager) refuse(w *waiter, state, cause error) {
	m.settle(w, &lockError{key: w.key, state: state, cause: cause})
}

func (m *Manager) settle(w *waiter, err error) {
	w.settled, w.err = true, err
	m.wakeSoon(w)
}
