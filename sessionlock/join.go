package sessionlock

import (
	"slices"
	"time"
)

// join lets those first in line hold e together with the shared holders of this process.
// After maxHandOvers of them the server is asked whether another process waits for the
// key: that one goes first then, as it would in the server's own queue, and else they
// join freely for a while.
func (m *Manager) join(e *entry) {
	for w := e.queue.first; w != nil && w.mode == shared; w = e.queue.first {
		if w.fair || e.handOvers >= maxHandOvers && !time.Now().Before(e.freeUntil) {
			m.wonder(e)
			return
		}
		e.handOvers++
		e.queue.remove(w)
		m.grant(e, w)
	}
}

// wonder asks the server whether another session waits for e, at most once every
// pollEvery: the question reads the server's whole lock table.
func (m *Manager) wonder(e *entry) {
	if e.wondering {
		return
	}
	now := time.Now()
	if m.home == nil || now.Sub(m.wondered) < pollEvery {
		m.curious = true
		m.pollSoon()
		return
	}
	m.wondered = now
	e.wondering = true
	m.home.push(wanted.forLock(e.id, exclusive), e)
}

// wonderAgain asks for all keys at once whose shared holders others want to join.
func (m *Manager) wonderAgain() {
	if !m.curious {
		return
	}
	m.curious, m.wondered = false, time.Time{}
	now := time.Now()
	for _, e := range m.ledger {
		if w := e.queue.first; w != nil && w.mode == shared && e.state == held && e.mode == shared && !e.wondering {
			e.wondering = true
			m.home.push(wanted.forLock(e.id, exclusive), e)
			m.wondered = now
		}
	}
}

// answerWanted lets those in line join where nobody else waits. The question is repeated
// for the others: who waits may give up.
func (m *Manager) answerWanted(p *part) {
	for _, e := range p.entries {
		e.wondering = false
		switch {
		case m.ledger[e.id] != e || e.state != held || e.mode != shared || e.holders == 0 || e.queue.first == nil:
		case p.err != nil || slices.Contains(p.refused, e.id):
			m.refuseTries(e, false)
			if e.queue.first != nil {
				m.curious = true
				m.pollSoon()
			}
		default:
			e.handOvers, e.freeUntil = 0, time.Now().Add(m.slice)
			m.serve(e)
		}
	}
}
