package sessionlock

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	lockTimeout = "55P03"
	outOfMemory = "53200" // the lock table is full
	deadlock    = "40P01"
)

// maxRetries is how often a try or an unlock that failed with an error is sent again.
const maxRetries = 3

// answer hands the answer of one statement to its entries.
func (m *Manager) answer(s *session, p *part) {
	switch {
	case p.statement.isUnlock():
		m.answerUnlock(s, p)
	case p.statement.isTry():
		m.answerTry(s, p)
	case p.statement.isWanted():
		m.answerWanted(p)
	case p.statement == slice:
		m.answerSlice(s, p)
	case p.issues != nil:
		m.answerIssue(s, p)
	case p.statement == unlockAll && s.farewell:
		m.farewell(s)
	}
}

func (m *Manager) answerTry(s *session, p *part) {
	if p.err != nil {
		m.repair(s, p)
		return
	}
	for _, id := range p.refused {
		if e := m.ledger[id]; e != nil {
			e.polling = false
			e.refused = true
		}
	}
	for _, e := range p.entries {
		if e.refused {
			e.refused = false
			m.denied(e)
		} else {
			m.granted(e, s)
		}
	}
}

// repair follows a try that failed with an error, which may have taken any of its
// locks. It gives all of them back, then asks one by one.
func (m *Manager) repair(s *session, p *part) {
	for _, e := range p.entries {
		e.retries++
		e.failure = p.err
	}
	s.repairs = append(s.repairs, part{statement: p.statement - try, entries: p.entries, again: true})
	m.touch(s)
}

func (m *Manager) answerUnlock(s *session, p *part) {
	if p.err != nil {
		// Which were given back is not known. Those that were answer no the next time.
		p.retries++
		if p.retries > maxRetries {
			m.lose(s, p.err)
			return
		}
		s.repairs = append(s.repairs, part{statement: p.statement, entries: p.entries, again: true, retries: p.retries})
		m.touch(s)
		return
	}
	if !p.again {
		for _, id := range p.refused {
			if e := m.ledger[id]; e != nil {
				e.refused = true
			}
		}
	}
	for _, e := range p.entries {
		switch {
		case e.state != unlocking:
			m.repaired(s, e)
		case e.refused:
			e.refused = false
			m.unlocked(e, false)
		default:
			m.unlocked(e, true)
		}
	}
}

// repaired asks again for a key whose try or wait failed with an error and that is
// certainly not held now.
func (m *Manager) repaired(s *session, e *entry) {
	err := e.failure
	if e.s != nil && e.s.role == waits {
		m.vacate(e)
	}
	if e.retries <= maxRetries && err.Code != outOfMemory || e.retries == 1 {
		if e.queue.first == nil {
			m.drop(e)
			return
		}
		if e.state == asking || e.polling {
			s.repairs = append(s.repairs, part{statement: try.forLock(e.id, e.mode), entries: []*entry{e}})
			m.touch(s)
			return
		}
		m.fillSlots()
		return
	}
	for w := e.queue.first; w != nil; w = e.queue.first {
		e.queue.remove(w)
		m.refuseFor(w, err)
	}
	m.drop(e)
}

// refuseFor settles a waiter with an error of the server.
func (m *Manager) refuseFor(w *waiter, err *pgconn.PgError) {
	if err.Code == outOfMemory {
		m.refuse(w, ErrTooManyLocks, fmt.Errorf("the server's lock table is full, raise max_locks_per_transaction: %w", err))
		return
	}
	m.refuse(w, err, nil)
}

func (m *Manager) answerSlice(s *session, p *part) {
	e := p.entries[0]
	switch {
	case p.err == nil:
		m.granted(e, s)
	case p.err.Code == lockTimeout:
		e.retries = 0
		m.vacate(e)
		if e.queue.first == nil {
			m.drop(e)
			return
		}
		m.toTheBack(e)
	default:
		m.repairSlice(s, e, p.err)
	}
}

// repairSlice follows a wait that failed with an error other than its own timeout.
func (m *Manager) repairSlice(s *session, e *entry, err *pgconn.PgError) {
	e.retries++
	e.failure = err
	s.repairs = append(s.repairs, part{statement: unlock.forLock(e.id, e.mode), entries: []*entry{e}, again: true})
	m.touch(s)
}
