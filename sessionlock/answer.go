package sessionlock

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// maxRetries is how often a try or an unlock is sent again after an error.
const maxRetries = 3

// tryAnswered gives the answer of a try to its entries.
func (g *ledger) tryAnswered(s *session, q *query) {
	if q.err != nil {
		g.undo(s, q)
		return
	}
	for _, id := range q.refused {
		if e := g.entries[id]; e != nil {
			e.question.polling = false
			e.question.refused = true
		}
	}
	for _, e := range q.entries {
		if e.question.refused {
			e.question.refused = false
			g.denied(e)
		} else {
			g.granted(e, s)
		}
	}
}

// granted handles a lock that the server granted to session s, for a try or a wait.
func (g *ledger) granted(e *entry, s *session) {
	g.waitlist.leave(e)
	e.state, e.session, e.question.polling, e.question.failures = held, s, false, 0
	g.serve(e)
}

// denied handles a lock that the server refused to a try. The answer says nothing to callers that came after the try was sent. The server is asked
// again for them, unless a waiter would go first.
func (g *ledger) denied(e *entry) {
	e.question.polling, e.question.failures = false, 0
	again := e.queue.triesOnly()
	g.refuseTries(e, again)
	switch {
	case e.queue.first == nil:
		g.drop(e)
	case again:
		g.waitlist.leave(e)
		g.ask(e)
	case e.state == waiting:
		g.waitlist.pollSoon()
	default:
		g.waitlist.enter(e)
	}
}

// undo is called after a statement failed with an error. The statement may have taken any of its locks, so undo releases
// all of them and then asks one by one.
func (g *ledger) undo(s *session, q *query) {
	unlock := q.variant
	if q.statement.IsTry() {
		unlock = q.statement.Undo()
	}
	for _, e := range q.entries {
		e.question.failures++
		e.question.lastError = q.err
	}
	s.repair(query{statement: unlock, entries: q.entries, again: true})
}

// waitAnswered gives the answer of a wait to its entry.
func (g *ledger) waitAnswered(s *session, q *query) {
	e := q.entries[0]
	switch {
	case q.err == nil:
		g.granted(e, s)
	case q.err.Code == sqlstate.LockNotAvailable: // the slice is over
		e.question.failures = 0
		g.waitlist.vacate(e)
		if e.queue.first == nil {
			g.drop(e)
			return
		}
		g.waitlist.toTheBack(e)
	default:
		g.undo(s, q)
	}
}

// unlockAnswered gives the answer of an unlock to its entries.
func (g *ledger) unlockAnswered(s *session, q *query) {
	if q.err != nil {
		// The server may have unlocked some of them. The next unlock says "not held" for those.
		q.retries++
		if q.retries > maxRetries {
			g.conns.lose(s, q.err)
			return
		}
		s.repair(query{statement: q.statement, entries: q.entries, again: true, retries: q.retries})
		return
	}
	if !q.again {
		for _, id := range q.refused {
			if e := g.entries[id]; e != nil {
				e.question.refused = true
			}
		}
	}
	for _, e := range q.entries {
		switch {
		case e.state != unlocking:
			g.undone(s, e)
		case e.question.refused:
			e.question.refused = false
			g.unlocked(e, false)
		default:
			g.unlocked(e, true)
		}
	}
}

// unlocked handles the answer to an unlock, which says whether the lock was held until then.
func (g *ledger) unlocked(e *entry, wasHeld bool) {
	if w := e.releaser; w != nil {
		e.releaser = nil
		if wasHeld {
			g.wakeups.finish(w, nil)
		} else {
			g.wakeups.finish(w, w.gives.lostError(nil, "the server did not hold it"))
		}
	}
	g.waitlist.vacate(e)
	g.askOrDrop(e)
	g.waitlist.fill()
}

// undone asks again for a key whose try or wait failed with an error. The key is certainly not held now.
func (g *ledger) undone(s *session, e *entry) {
	err := e.question.lastError
	if e.session != nil && e.session.role == wire.Waiter {
		g.waitlist.vacate(e)
	}
	if e.question.failures <= maxRetries && err.Code != sqlstate.OutOfMemory || e.question.failures == 1 {
		switch {
		case e.queue.first == nil:
			g.drop(e)
		case e.state == asking || e.question.polling:
			s.repair(query{statement: wire.Try.For(e.id, e.mode), entries: []*entry{e}})
		default:
			g.waitlist.fill()
		}
		return
	}
	for w := e.queue.first; w != nil; w = e.queue.first {
		e.queue.remove(w)
		g.refuseFor(w, err)
	}
	g.drop(e)
}

// refuseFor gives a waiter an error of the server.
func (g *ledger) refuseFor(w *waiter, err *pgconn.PgError) {
	if err.Code == sqlstate.OutOfMemory {
		g.wakeups.refuse(w, ErrTooManyLocks, fmt.Errorf("the server's lock table is full, raise max_locks_per_transaction: %w", err))
		return
	}
	g.wakeups.refuse(w, err, nil)
}
