package sessionlock

import (
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// state is where an entry is between nobody of this process wanting a key and somebody holding it. The diagram is in
// docs/internals/sessionlock.md.
type state uint8

const (
	asking    state = iota // a try is on its way, or will be when there is a session
	waiting                // somebody else holds it: on the waitlist
	held                   // by holders of this process, on a session
	unlocking              // on its way back to the server
)

// entry is a key that somebody of this process holds or wants. It leaves the ledger when nobody does and the server has it
// back.
type entry struct {
	id       holder.Place
	state    state
	mode     wire.Mode // that is asked for, or held
	session  *session  // that was asked, holds it or waits for it; nil while there is none
	holders  holders
	queue    queue
	turns    turns
	question question
	releaser *waiter // who is told when the server has it back
}

// Place is the key as the server knows it.
func (e *entry) Place() holder.Place { return e.id }

// holders are those that hold a key together.
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

// maxHandOvers is how often a key goes from holder to holder inside the process before the server, and so other processes,
// get it again.
const maxHandOvers = 16

// turns is how long a key may stay in this process.
type turns struct {
	handOvers int       // from holder to holder, since the server was asked
	freeUntil time.Time // until when they are not counted: nobody else wanted it
	asking    bool      // whether anybody else wants it
}

// areOver reports whether the server is to be asked before the next hand-over.
func (t *turns) areOver() bool { return t.handOvers >= maxHandOvers && !time.Now().Before(t.freeUntil) }

// question is what the server is asked about a key apart from its state, and how that goes.
type question struct {
	polling   bool // a try is on its way while the key waits
	torn      bool // a question was on its way when its session ended: whose writer may still read the entry
	refused   bool // the answer that is being read says no
	failures  int  // how often asking failed with an error
	lastError *pgconn.PgError
}

// waitLimit is how long a session waits for e: atMost, and no longer than anybody wants e.
func (e *entry) waitLimit(atMost time.Duration, now holder.Instant) time.Duration {
	var last time.Duration
	for w := e.queue.first; w != nil; w = w.next {
		if w.deadline == (holder.Instant{}) {
			return atMost
		}
		last = max(last, w.deadline.Mono)
	}
	return min(atMost, max(minSlice, last-now.Mono))
}
