package sessionlock

import (
	"slices"
	"time"

	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// rivals finds out whether other sessions wait for keys that are held here in shared mode. It asks at most once every
// pollEvery, because the statement reads the server's whole lock table.
type rivals struct {
	askedAt time.Time
	due     bool // ask again with the next poll

	ledger   *ledger
	conns    *connections
	waitlist *waitlist
}

// ask asks for e, now or with the next poll.
func (r *rivals) ask(e *entry) {
	if e.turns.asking {
		return
	}
	now := time.Now()
	if r.conns.home == nil || now.Sub(r.askedAt) < pollEvery {
		r.askLater()
		return
	}
	r.send(e, now)
}

func (r *rivals) send(e *entry, now time.Time) {
	r.askedAt = now
	e.turns.asking = true
	r.conns.home.ask(wire.Rivals.For(e.id, wire.Exclusive), e)
}

func (r *rivals) askLater() {
	r.due = true
	r.waitlist.pollSoon()
}

// poll asks, if that is due, for all keys whose shared holders others here want to join. There must be a home.
func (r *rivals) poll() {
	if !r.due {
		return
	}
	r.due, r.askedAt = false, time.Time{}
	now := time.Now()
	for _, e := range r.ledger.entries {
		if w := e.queue.first; w != nil && w.mode == wire.Shared && e.state == held && e.mode == wire.Shared && !e.turns.asking {
			r.send(e, now)
		}
	}
}

// notAnswered notes that the session which was asked for e has ended.
func (r *rivals) notAnswered(e *entry) { e.turns.asking, r.due = false, true }

// answered lets callers join where no other session waits. For the other keys it asks again later: those sessions may
// give up.
func (r *rivals) answered(q *query) {
	for _, e := range q.entries {
		e.turns.asking = false
		switch {
		case r.ledger.entries[e.id] != e || e.state != held || e.mode != wire.Shared || e.holders.n == 0 || e.queue.first == nil:
		case q.err != nil || slices.Contains(q.refused, e.id):
			r.ledger.refuseTries(e, false)
			if e.queue.first != nil {
				r.askLater()
			}
		default:
			e.turns.handOvers, e.turns.freeUntil = 0, time.Now().Add(r.waitlist.slice)
			r.ledger.serve(e)
		}
	}
}
