package sessionlock

import (
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/waits"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// state is the state of an entry. docs/internals/sessionlock.md has the diagram.
type state uint8

const (
	asking    state = iota // a try is on its way, or will be when there is a session
	waiting                // another process holds it: on the waitlist
	held                   // by holders of this process, on a session
	unlocking              // the unlock is on its way
)

// entry is a key that somebody in this process holds or wants. It leaves the ledger when nobody does, and the server has
// unlocked it.
type entry struct {
	id       holder.Place
	state    state
	mode     wire.Mode // requested, or held
	session  *session  // the session that was asked, holds it or waits for it; or nil
	holders  holders
	queue    queue
	turns    turns
	question question
	since    time.Time // of a wait for another process
	sliced   bool      // the wait goes on: a slice of it is over
	releaser *waiter   // is told when the server has unlocked it
}

// Place is the key as the server knows it.
func (e *entry) Place() holder.Place { return e.id }

// holders are the locks that hold a key together.
type holders struct {
	first *Lock // of a list, by Lock.next
	n     int
}

func (h *holders) add(l *Lock) {
	l.next, h.first = h.first, l
	h.n++
}

func (h *holders) remove(l *Lock) {
	for at := &h.first; *at != nil; at = &(*at).next {
		if *at == l {
			*at = l.next
			break
		}
	}
	l.next, l.entry = nil, nil
	h.n--
}

// maxHandOvers is how often a key goes from holder to holder inside the process. Then the manager unlocks it on the
// server, and other processes get a turn.
const maxHandOvers = 16

// turns decides for how long a key stays in this process.
type turns struct {
	handOvers int       // from holder to holder, since the server was asked
	freeUntil time.Time // until then they are not counted: no other process wanted it
	asking    bool      // a question is on its way: does another process want it?
}

// areOver reports whether the manager must ask the server before the next hand-over.
func (t *turns) areOver() bool { return t.handOvers >= maxHandOvers && !time.Now().Before(t.freeUntil) }

// question is the state of the questions about a key that do not depend on the state of the entry.
type question struct {
	polling   bool // a try is on its way while the key waits
	torn      bool // its session ended with a question on its way: the writer of that session may still read the entry
	refused   bool // the answer that is being read refuses it
	failures  int  // how many questions failed with an error
	lastError *pgconn.PgError
}

// waitLimit returns how long a session waits for e: at most atMost, and no longer than somebody wants e.
func (e *entry) waitLimit(atMost time.Duration, now holder.Instant) time.Duration {
	if left, bounded := e.left(now); bounded {
		return min(atMost, max(minSlice, left))
	}
	return atMost
}

// left returns how much longer somebody wants e. bounded is false if somebody wants it for ever.
func (e *entry) left(now holder.Instant) (left time.Duration, bounded bool) {
	var last time.Duration
	for w := e.queue.first; w != nil; w = w.next {
		if w.deadline == (holder.Instant{}) {
			return 0, false
		}
		last = max(last, w.deadline.Mono)
	}
	return last - now.Mono, true
}

// before describes the wait for e until now. In its first slice that is nothing.
func (e *entry) before(now time.Time) waits.Before {
	if !e.sliced {
		return waits.Before{}
	}
	before := waits.Before{Waited: now.Sub(e.since)}
	if left, bounded := e.left(holder.At(now)); bounded {
		before.Left = max(left, minSlice)
	}
	return before
}
