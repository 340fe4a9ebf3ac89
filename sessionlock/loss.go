package sessionlock

import (
	"errors"

	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// errSilent says that there was no proof for too long that a session lives.
var errSilent = errors.New("the server has not answered")

// sessionLost handles the end of a session: the locks that it held are lost, and the requests that were sent on it are
// sent again.
func (g *ledger) sessionLost(s *session, cause error) {
	for _, e := range g.entries {
		if e.turns.asking && s.role == wire.Home {
			g.rivals.notAnswered(e)
		}
		if e.session == s || e.question.polling && s.role == wire.Home {
			g.entryLost(e, cause)
		}
	}
}

func (g *ledger) entryLost(e *entry, cause error) {
	e.question.torn = true
	switch e.state {
	case held:
		g.loseHolders(e, cause)
	case unlocking:
		if w := e.releaser; w != nil {
			e.releaser = nil
			g.wakeups.finish(w, w.gives.lostError(cause, ""))
		}
	case waiting:
		e.question.polling, e.session = false, nil
		if e.queue.first == nil {
			g.drop(e)
		}
		return
	case asking:
	}
	e.session = nil
	g.askOrDrop(e)
}

// loseHolders tells all holders of a key.
func (g *ledger) loseHolders(e *entry, cause error) {
	for l := e.holders.first; l != nil; l = e.holders.first {
		e.holders.remove(l)
		err := l.lostError(cause, "")
		l.lose(err)
		if l.reported {
			g.reporter.later(l.event(observe.Lost, err))
		}
	}
}

// close wakes all callers that wait for a key, and marks all locks that are held as lost.
func (g *ledger) close() {
	for _, e := range g.entries {
		for w := e.queue.first; w != nil; w = e.queue.first {
			e.queue.remove(w)
			g.wakeups.refuse(w, ErrClosed, nil)
		}
		g.loseHolders(e, ErrClosed)
	}
}

// askAll sends the requests that waited for a home.
func (g *ledger) askAll() {
	for _, e := range g.entries {
		if e.state == asking && e.session == nil {
			g.ask(e)
		}
	}
}

// refuseTriesWithoutHome refuses the callers that do not wait, while there is no home.
func (g *ledger) refuseTriesWithoutHome(cause error) {
	for _, e := range g.entries {
		if e.state != asking || e.session != nil {
			continue
		}
		for w := e.queue.first; w != nil; {
			next := w.next
			if w.try {
				e.queue.remove(w)
				g.wakeups.finish(w, lockError(w.key, cause, nil, ""))
			}
			w = next
		}
		if e.queue.first == nil {
			g.drop(e)
		}
	}
}
