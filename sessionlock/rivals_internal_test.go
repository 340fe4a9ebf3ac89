package sessionlock

import (
	"testing"
	"time"

	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// together returns a key that has been joined so often that the server must be asked before the next one joins.
func (r *rig) together(n int) *waiter {
	r.t.Helper()
	w := r.held(n, shared)
	for range maxHandOvers {
		r.holds(r.want(n, shared))
	}
	return w
}

func TestRivals_nobodyWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.together(1)
	next := r.want(1, shared)
	r.waits(next)
	r.yes(r.conns.home, wire.Rivals)
	r.holds(next)
	for range 3 * maxHandOvers {
		r.holds(r.want(1, shared)) // they join freely for a while
	}
}

// Sessions in the server's queue go first. Tries are refused, and waiters ask again, because those sessions may give up.
func TestRivals_somebodyWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.together(1)
	next, hasty := r.want(1, shared), r.want(1, shared, try)
	r.no(r.conns.home, wire.Rivals)
	r.waits(next)
	r.is(hasty, "ErrNotAcquired", are(ErrNotAcquired))
	if !r.rivals.due || r.waitlist.pollAt.IsZero() {
		t.Error("it is not asked again")
	}
	r.polls(wire.Rivals)
	r.holds(next)
}

// The statement reads the whole lock table: it is sent once for all keys, and not again at once.
func TestRivals_areAskedForTogether(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range 3 {
		r.together(n)
	}
	r.want(0, shared)
	r.want(1, shared)
	r.want(2, shared)
	r.asksFor(1, r.conns.home, wire.Rivals) // the others wait for the poll
	r.upkeep.poll()
	r.asksFor(2, r.conns.home, wire.Rivals)
	r.upkeep.poll()
	r.silent(r.conns.home)
}

// A question without an answer is sent again.
func TestRivals_sessionEnds(t *testing.T) {
	t.Parallel()
	r, s := newWaiterRig(t)
	w := r.refused(1, shared)
	r.yes(s, wire.Wait) // held on another session than the home, which is asked
	for range maxHandOvers {
		r.want(1, shared)
	}
	next := r.want(1, shared)
	r.asks(r.conns.home, wire.Rivals)
	r.conns.lose(r.conns.home, errSilent)
	r.holds(w)
	r.waits(next)
	r.addHome()
	r.polls(wire.Rivals)
	r.holds(next)
}

// An answer is ignored if its key has a new holder, or was released.
func TestRivals_answerComesLate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.together(1)
	next := r.want(1, shared)
	r.asks(r.conns.home, wire.Rivals)
	r.ledger.abandon(next)
	for l := w.entry.holders.first; l != nil; l = w.entry.holders.first {
		r.release(&waiter{outcome: outcome{lock: l}})
	}
	r.answers(r.conns.home)
	r.yes(r.conns.home, wire.Unlock+1)
	r.empty()
}

func TestTurns_areOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		turns turns
		want  bool
	}{
		"none":                {turns{}, false},
		"one left":            {turns{handOvers: maxHandOvers - 1}, false},
		"all":                 {turns{handOvers: maxHandOvers}, true},
		"nobody else":         {turns{handOvers: maxHandOvers, freeUntil: time.Now().Add(time.Hour)}, false},
		"nobody else, before": {turns{handOvers: maxHandOvers, freeUntil: time.Now().Add(-time.Hour)}, true},
	} {
		if got := c.turns.areOver(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
