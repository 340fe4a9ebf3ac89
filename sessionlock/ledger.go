package sessionlock

import (
	"fmt"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// ledger has the keys that somebody in this process holds or wants. If a session asks for a lock that it already has, PostgreSQL grants it again.
// So only the ledger keeps two goroutines from sharing an exclusive lock. It decides who gets a key next, and what to ask the server about it.
// Answers are handled in answer.go, the end of a session in loss.go.
type ledger struct {
	entries map[holder.Place]*entry
	unused  []*entry
	limit   int // see MaxLocks

	wakeups  *wakeups
	conns    *connections
	waitlist *waitlist
	rivals   *rivals
	reporter *reporter
}

// acquire puts a waiter into the queue of its key. The waiter gets one answer, now or later, by grant or by refuse.
func (g *ledger) acquire(w *waiter) {
	e := g.entries[w.id]
	if e == nil {
		if len(g.entries) >= g.limit {
			g.wakeups.finish(w, lockError(w.key, ErrTooManyLocks, nil, fmt.Sprintf("the manager has %d, see MaxLocks", g.limit)))
			return
		}
		e = g.newEntry(w.id)
		w.entry = e
		e.queue.push(w)
		g.ask(e)
		return
	}
	w.entry = e
	if e.state == held && !g.conns.checkAlive(e.session, time.Now()) {
		g.acquire(w) // otherwise w could get a lock that the server gave to another process
		return
	}
	switch {
	case e.state == held && e.mode == wire.Shared && w.mode == wire.Shared && !e.queue.wants(wire.Exclusive):
		e.queue.push(w)
		g.join(e)
	case w.try && (e.state == held || e.state == waiting && (!e.question.polling || e.queue.first != nil)):
		g.wakeups.refuse(w, ErrNotAcquired, nil)
	default:
		w.late = e.question.polling || e.state == asking && e.session != nil
		e.queue.push(w)
	}
}

// ask sends a try for the first waiter of the queue. Without a home it waits for one.
func (g *ledger) ask(e *entry) {
	e.state, e.mode, e.session, e.turns.handOvers, e.turns.freeUntil = asking, e.queue.first.mode, g.conns.home, 0, time.Time{}
	if e.session != nil {
		e.session.ask(wire.Try.For(e.id, e.mode), e)
	}
}

// serve gives a key that its session holds for nobody to the first waiters of the queue, or unlocks it.
func (g *ledger) serve(e *entry) {
	for w := e.queue.first; w != nil && w.mode == e.mode; w = e.queue.first {
		e.queue.remove(w)
		g.grant(e, w)
		if e.mode == wire.Exclusive {
			break
		}
	}
	if e.holders.n == 0 {
		g.giveBack(e)
		return
	}
	g.refuseTries(e, false)
}

// join lets the first waiters of the queue hold e together with the shared holders of this process. After maxHandOvers of
// them, the server is asked whether another process waits for the key. If so, that process goes first, as it would in the
// server's own queue. If not, callers join freely for a while.
func (g *ledger) join(e *entry) {
	for w := e.queue.first; w != nil && w.mode == wire.Shared; w = e.queue.first {
		if w.fair || e.turns.areOver() {
			g.rivals.ask(e)
			return
		}
		e.turns.handOvers++
		e.queue.remove(w)
		g.grant(e, w)
	}
}

// grant makes w a holder.
func (g *ledger) grant(e *entry, w *waiter) {
	l := w.newLock
	w.newLock = nil
	l.entry, l.session = e, e.session
	if g.reporter.isOn() {
		l.since = time.Now().UnixNano()
	}
	e.holders.add(l)
	w.lock = l
	g.wakeups.finish(w, nil)
}

// refuseTries refuses the callers that do not wait. If late ones are spared, it does not refuse those that came after the
// try was sent.
func (g *ledger) refuseTries(e *entry, spareLate bool) {
	for w := e.queue.first; w != nil; {
		next := w.next
		if w.try && (!spareLate || !w.late) {
			e.queue.remove(w)
			g.wakeups.refuse(w, ErrNotAcquired, nil)
		}
		w.late = false
		w = next
	}
}

// release takes a lock from its holder. w gets its answer when the server has unlocked the key, or the next waiter has
// it.
func (g *ledger) release(w *waiter) {
	l := w.gives
	if l.end.err == nil && l.entry.queue.first != nil {
		g.conns.checkAlive(l.session, time.Now()) // otherwise the next could get a lock that the server gave to another process
	}
	if l.end.err != nil {
		g.wakeups.finish(w, l.ended())
		return
	}
	e := l.entry
	w.entry = e
	l.markReleased()
	e.holders.remove(l)
	next := e.queue.first
	switch {
	case e.holders.n > 0:
		g.wakeups.finish(w, nil)
	case next != nil && next.mode == e.mode && e.mode == wire.Exclusive && !next.fair && e.turns.handOvers < maxHandOvers:
		e.turns.handOvers++
		g.wakeups.finish(w, nil)
		g.serve(e)
	default:
		e.releaser = w
		g.giveBack(e)
	}
}

func (g *ledger) giveBack(e *entry) {
	e.state = unlocking
	e.session.ask(wire.Unlock.For(e.id, e.mode), e)
}

// abandon removes a waiter whose caller has left. A request that is on its way goes on; if it is granted and nobody wants
// the key, the key is unlocked.
func (g *ledger) abandon(w *waiter) {
	e := w.entry
	w.finished = true
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
		if e.session == nil && !e.question.polling {
			g.drop(e)
		}
	case e.state == held && e.mode == wire.Shared:
		g.join(e) // later waiters may have waited only because of w
	}
}

// askOrDrop asks the server for the waiters of the queue. If there are none, it drops the entry.
func (g *ledger) askOrDrop(e *entry) {
	if e.queue.first == nil {
		g.drop(e)
		return
	}
	g.ask(e)
}

// newEntry adds an entry for a key to the ledger.
func (g *ledger) newEntry(id holder.Place) *entry {
	var e *entry
	if n := len(g.unused); n > 0 {
		e = g.unused[n-1]
		g.unused = g.unused[:n-1]
	} else {
		e = &entry{}
	}
	e.id = id
	g.entries[id] = e
	return e
}

// drop removes an entry that nobody wants and no session holds.
//
// The entry is used again if nobody has a pointer to it. A waiter without an answer, a holder, and a question to a live
// session would have kept the entry in the ledger. Two things do not: the question whether another process wants the key,
// and a question to a session that ended.
func (g *ledger) drop(e *entry) {
	g.waitlist.leave(e)
	delete(g.entries, e.id)
	if len(g.unused) < maxKeys && !e.turns.asking && !e.question.torn {
		*e = entry{}
		g.unused = append(g.unused, e)
	}
}
