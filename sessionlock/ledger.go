package sessionlock

import (
	"fmt"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// ledger is the keys that somebody of this process holds or wants. PostgreSQL grants a lock again to the session that has
// it, so the ledger alone keeps two goroutines from sharing an exclusive lock. It decides who gets a key next and what
// the server is asked about it; answers come back in answer.go, the end of a session in loss.go.
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

// acquire puts a waiter in line for its key. It gets one answer, now or later, by grant or by refuse.
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
		g.acquire(w) // else w could be given what the server gave to somebody else
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

// ask sends a try for the first in line, or leaves it until there is a home.
func (g *ledger) ask(e *entry) {
	e.state, e.mode, e.session, e.turns.handOvers, e.turns.freeUntil = asking, e.queue.first.mode, g.conns.home, 0, time.Time{}
	if e.session != nil {
		e.session.ask(wire.Try.For(e.id, e.mode), e)
	}
}

// serve gives a key that a session holds for nobody to those first in line, or back.
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

// join lets those first in line hold e together with the shared holders of this process. After maxHandOvers of them the
// server is asked whether another process waits for the key: that one goes first then, as it would in the server's own
// queue, and else they join freely for a while.
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

// refuseTries answers those who do not wait, but not those of them who came late if they are spared.
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

// release takes a lock from its holder and answers w when the server, or the next in line, has the key.
func (g *ledger) release(w *waiter) {
	l := w.gives
	if l.end.err == nil && l.entry.queue.first != nil {
		g.conns.checkAlive(l.session, time.Now()) // else the next could be given what the server gave to somebody else
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

// abandon takes a waiter out of line whose caller went away. What is on its way goes on, and goes back when it arrives for
// nobody.
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
		g.join(e) // those behind may have waited for this one only
	}
}

// askOrDrop asks again for those in line, or drops the entry.
func (g *ledger) askOrDrop(e *entry) {
	if e.queue.first == nil {
		g.drop(e)
		return
	}
	g.ask(e)
}

// newEntry puts an entry for a key into the ledger.
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

// drop takes an entry out of the ledger that nobody wants and no session holds.
//
// The entry is used again. Nobody has it any more: a waiter without an answer is in its queue or its releaser, a holder
// on its list, and what a session was asked is answered, all of which would have kept it; but for the question whether
// somebody else wants it, and what was asked of a session that ended.
func (g *ledger) drop(e *entry) {
	g.waitlist.leave(e)
	delete(g.entries, e.id)
	if len(g.unused) < maxKeys && !e.turns.asking && !e.question.torn {
		*e = entry{}
		g.unused = append(g.unused, e)
	}
}
