package sessionlock

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

func are(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// PostgreSQL would grant the lock twice to one session. So the ledger asks once, and hands the lock on.
func TestLedger_oneHolderAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.want(1), r.want(1)
	r.yes(r.conns.home, wire.Try)
	r.holds(a)
	r.waits(b)
	back := r.release(a)
	if !back.finished || back.err != nil {
		t.Errorf("released: %v, %v", back.finished, back.err)
	}
	r.silent(r.conns.home)
	r.holds(b)
	r.release(b)
	r.yes(r.conns.home, wire.Unlock)
	r.empty()
}

// Requests of concurrent callers share a batch, and releases go first.
func TestLedger_manyKeysOneStatement(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.want(1), r.want(2)
	r.asksFor(2, r.conns.home, wire.Try)
	r.answers(r.conns.home)
	r.release(a)
	c := r.want(3)
	batch := r.sent(r.conns.home)
	if len(batch.queries) != 2 || batch.queries[0].statement != wire.Unlock || batch.queries[1].statement != wire.Try {
		t.Fatalf("sends %s, want the unlock, then the try", batch)
	}
	r.answers(r.conns.home)
	r.holds(b, c)
}

func TestLedger_handsOnNoMoreThan16Times(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	last := r.held(1)
	for range maxHandOvers {
		next := r.want(1)
		r.release(last)
		r.holds(next)
		last = next
	}
	next := r.want(1)
	r.release(last)
	r.waits(next) // others first
	r.yes(r.conns.home, wire.Unlock)
	r.waits(next)
	r.yes(r.conns.home, wire.Try)
	r.holds(next)
}

func TestLedger_fairGoesThroughTheServer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.held(1)
	b := r.want(1, fair)
	r.release(a)
	r.waits(b)
	r.yes(r.conns.home, wire.Unlock)
	r.yes(r.conns.home, wire.Try)
	r.holds(b)
}

func TestLedger_sharedHoldTogether(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.held(1, shared)
	b := r.want(1, shared)
	r.holds(b)
	x := r.want(1)
	c := r.want(1, shared) // waits after one that wants it exclusively
	r.waits(c)
	r.release(a)
	r.waits(x)
	r.release(b)
	r.yes(r.conns.home, wire.Unlock+1)
	r.yes(r.conns.home, wire.Try)
	r.holds(x)
	r.waits(c)
	r.ledger.abandon(r.want(1))
	r.release(x)
	r.yes(r.conns.home, wire.Unlock)
	r.yes(r.conns.home, wire.Try+1)
	r.holds(c)
}

// If a waiter between shared holders leaves, nobody waits for it any more.
func TestLedger_abandonedExclusive(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.held(1, shared)
	x := r.want(1)
	c := r.want(1, shared)
	r.ledger.abandon(x)
	r.holds(c)
}

// A grant that comes after its caller has left is given back.
func TestLedger_abandonedOnTheWay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.want(1)
	r.asks(r.conns.home, wire.Try)
	r.ledger.abandon(w)
	r.answers(r.conns.home)
	r.yes(r.conns.home, wire.Unlock)
	r.empty()
}

// A try is answered by a question that was sent after it came.
func TestLedger_tryThatCameLate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.want(1, try)
	q := r.asks(r.conns.home, wire.Try)
	b := r.want(1, try)
	q.refused = []holder.Place{a.id}
	r.answers(r.conns.home)
	r.is(a, "ErrNotAcquired", are(ErrNotAcquired))
	r.waits(b)
	r.yes(r.conns.home, wire.Try)
	r.holds(b)
	c := r.want(1, try)
	r.is(c, "ErrNotAcquired", are(ErrNotAcquired))
}

func TestLedger_isFull(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ledger.limit = 1
	r.want(1)
	r.want(1)
	r.is(r.want(2), "ErrTooManyLocks", are(ErrTooManyLocks))
}

// L15: requests on their way are sent again. Locks that were held are lost, even with an unlock on its way.
func TestLedger_sessionEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	old := r.conns.home
	mine := r.want(1)
	gone := r.want(2)
	r.asks(old, wire.Try)
	r.answers(old)
	back := r.release(gone)
	next := r.want(2)
	asked := r.want(3)
	r.sent(old)
	r.conns.lose(old, errSilent)
	for what, err := range map[string]error{"held": mine.lock.end.err, "on its way back": back.err} {
		if !errors.Is(err, ErrLost) || !errors.Is(err, errSilent) {
			t.Errorf("%s: %v", what, err)
		}
	}
	r.waits(next, asked)
	r.asksFor(2, r.addHome(), wire.Try)
	r.answers(r.conns.home)
	r.holds(next, asked)
}

// Tries do not wait for a home.
func TestLedger_noHome(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.conns.home = nil
	a, b := r.want(1, try), r.want(2)
	r.homeNotFound(errSilent)
	r.is(a, "why there is none", are(errSilent))
	r.waits(b)
	r.yes(r.addHome(), wire.Try)
	r.holds(b)
}

// P2: a try that fails with an error may have taken any of its locks. All are released before they are requested again one by one. So only the
// callers that meet a full lock table again get that error.
func TestLedger_tryFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.want(1), r.want(2)
	r.fails(r.conns.home, wire.Try, sqlstate.OutOfMemory)
	if q := r.asksFor(2, r.conns.home, wire.Unlock); !q.again {
		t.Fatal("gives back what it holds for certain")
	}
	r.answers(r.conns.home)
	batch := r.sent(r.conns.home)
	if len(batch.queries) != 2 || len(batch.queries[0].entries) != 1 {
		t.Fatalf("asks again by %s, want one by one", batch)
	}
	batch.queries[0].err = &pgconn.PgError{Code: sqlstate.OutOfMemory}
	r.answers(r.conns.home)
	r.holds(b)
	r.yes(r.conns.home, wire.Unlock)
	r.is(a, "ErrTooManyLocks", are(ErrTooManyLocks))
}

// If an unlock fails again and again, it is unclear what is held, so the session ends.
func TestLedger_unlockFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.conns.home
	a := r.held(1)
	back := r.release(a)
	for range maxRetries + 1 {
		r.fails(s, wire.Unlock, "XX000")
	}
	if s.dead == nil {
		t.Error("the session lives on")
	}
	r.is(back, "ErrLost", are(ErrLost))
}

func TestLedger_serverDidNotHoldIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.held(1)
	back := r.release(a)
	r.no(r.conns.home, wire.Unlock)
	r.is(back, "ErrLost", are(ErrLost))
	r.empty()
}

// A session that has been silent for too long gives its key to nobody in this process.
func TestLedger_handsOnNothingThatIsNotProven(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := r.conns.home
	a := r.held(1, shared)
	s.provenAt = time.Now().Add(-4 * time.Hour)
	b := r.want(1, shared)
	r.waits(b)
	if s.dead == nil || !errors.Is(a.lock.end.err, ErrLost) {
		t.Errorf("the session is %v, the lock %v", s.dead, a.lock.end.err)
	}
}

// An entry is used again, unless the writer of a session that has ended may still read it.
func TestLedger_usesEntriesAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.want(1)
	e := w.entry
	r.no(r.conns.home, wire.Try)
	r.ledger.abandon(w)
	r.empty()
	if w = r.want(2); w.entry != e {
		t.Error("an entry that nobody has is not used again")
	}
	r.asks(r.conns.home, wire.Try)
	r.ledger.abandon(w)
	r.conns.lose(r.conns.home, errSilent)
	r.empty()
	if r.want(3).entry == e {
		t.Error("an entry is used again that is on its way to a server")
	}
}

func TestLedger_close(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := r.want(1), r.want(1)
	r.yes(r.conns.home, wire.Try)
	r.ledger.close()
	r.is(b, "ErrClosed", are(ErrClosed))
	if err := a.lock.end.err; !errors.Is(err, ErrLost) || !errors.Is(err, ErrClosed) {
		t.Errorf("the holder is told %v", err)
	}
}
