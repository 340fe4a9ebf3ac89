package sessionlock

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// refused returns a waiter for a key that somebody else holds.
func (r *rig) refused(n int, opts ...func(*waiter)) *waiter {
	r.t.Helper()
	w := r.want(n, opts...)
	r.no(r.conns.home, wire.Try.For(w.id, w.mode))
	return w
}

// timesOut lets the time for the wait of s pass.
func (r *rig) timesOut(s *session) {
	r.t.Helper()
	r.fails(s, wire.Wait, sqlstate.LockNotAvailable)
}

// newWaiterRig is a rig with a session to wait on.
func newWaiterRig(t *testing.T) (*rig, *session) {
	t.Helper()
	r := newRig(t)
	return r, r.addWaiter()
}

// L6, L7: the key that has waited longest is next. A key whose slice is over goes to the back.
func TestWaitlist_takesTurns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.refused(1)
	r.refused(2)
	third := r.refused(3)
	s := r.addWaiter()
	for i, n := range []int64{1, 2, 3, 1, 2} {
		if s.waitFor == nil || s.waitFor.id.ID != n {
			t.Fatalf("turn %d is that of %v, want key %d", i, s.waitFor, n)
		}
		r.timesOut(s)
	}
	if s.waitFor.id.ID != 3 {
		t.Fatal("the third does not wait")
	}
	r.yes(s, wire.Wait)
	r.holds(third)
	if third.lock.session != s {
		t.Error("granted on one session, held on another")
	}
}

// A key that was granted on a session stays there. When it is released, the session is free again.
func TestWaitlist_sessionIsFreeAfterTheUnlock(t *testing.T) {
	t.Parallel()
	r, s := newWaiterRig(t)
	w := r.refused(1)
	r.yes(s, wire.Wait)
	r.refused(2)
	r.silent(s)
	r.release(w)
	r.yes(s, wire.Unlock)
	if s.waitFor == nil || s.waitFor.id.ID != 2 {
		t.Errorf("it waits for %v, want key 2", s.waitFor)
	}
}

// One statement asks again for all keys without a session to wait on. It leaves out keys with one.
func TestWaitlist_polls(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.addWaiter()
	r.refused(1)
	r.refused(2)
	r.refused(3)
	if r.waitlist.pollAt.IsZero() {
		t.Fatal("no poll is due")
	}
	r.upkeep.poll()
	if q := r.asksFor(2, r.conns.home, wire.Try); q.entries[0].id.ID != 2 || q.entries[1].id.ID != 3 {
		t.Errorf("asks for keys %v and %v, want 2 and 3", q.entries[0].id, q.entries[1].id)
	}
	r.upkeep.poll()
	r.silent(r.conns.home) // the first poll is not answered
}

// L6: a session waits no longer than somebody wants the key, and never so long that the server takes it for part of a deadlock.
func TestWaitlist_slice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.waitlist.slice = 400 * time.Millisecond
	s := r.addWaiter()
	soon := func(w *waiter) { w.deadline = holder.At(time.Now().Add(100 * time.Millisecond)) }
	w := r.refused(1, soon)
	if limit := r.asks(s, wire.Wait).limit; limit > 100*time.Millisecond || limit < minSlice {
		t.Errorf("waits for %s where all have 100 ms", limit)
	}
	r.ledger.abandon(w)
	r.waitedLongEnough(s)
	r.empty()
	r.refused(1, soon)
	r.want(1) // for as long as it takes
	if limit := r.asks(s, wire.Wait).limit; limit != 400*time.Millisecond {
		t.Errorf("waits for %s, want the slice", limit)
	}
	e := &entry{}
	e.queue.push(&waiter{deadline: holder.At(time.Now().Add(-time.Second))})
	if limit := e.waitLimit(time.Second, holder.Now()); limit != minSlice {
		t.Errorf("waits for %s where the time of all is over", limit)
	}
}

// waitedLongEnough is timesOut of a query that was sent before.
func (r *rig) waitedLongEnough(s *session) {
	s.sent[0].queries[0].err = &pgconn.PgError{Code: sqlstate.LockNotAvailable}
	r.answers(s)
}

// If nobody waits any more when the grant arrives, the lock is released.
func TestWaitlist_grantedToNobody(t *testing.T) {
	t.Parallel()
	r, s := newWaiterRig(t)
	w := r.refused(1)
	r.asks(s, wire.Wait)
	r.ledger.abandon(w)
	r.answers(s)
	r.yes(s, wire.Unlock)
	r.empty()
}

func TestWaitlist_sessionEnds(t *testing.T) {
	t.Parallel()
	r, s := newWaiterRig(t)
	w := r.refused(1)
	r.asks(s, wire.Wait)
	r.conns.lose(s, errSilent)
	if r.waitlist.pool.size != 0 || len(r.waitlist.free) != 0 {
		t.Errorf("%d sessions, %d of them free, want none", r.waitlist.pool.size, len(r.waitlist.free))
	}
	r.waits(w)
	r.polls(wire.Try)
	r.holds(w)
}

// A session that becomes free while the manager is closed begins no wait: nobody would get the answer.
func TestWaitlist_closed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.refused(1)
	r.life.closed = true
	if s := r.addWaiter(); s.waitFor != nil {
		t.Error("a session waits for a manager that is closed")
	}
}

// A wait that fails with an error other than its own timeout may hold the lock, so the lock is released first.
func TestWaitlist_waitFails(t *testing.T) {
	t.Parallel()
	r, s := newWaiterRig(t)
	w := r.refused(1)
	r.fails(s, wire.Wait, sqlstate.DeadlockDetected)
	r.no(s, wire.Unlock)
	r.yes(s, wire.Wait)
	r.holds(w)
}

func TestWaiterPool_hasRoom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pool waiterPool
		want bool
	}{
		"empty":            {waiterPool{limit: 1}, true},
		"full":             {waiterPool{limit: 1, size: 1}, false},
		"one is dialled":   {waiterPool{limit: 1, dialing: 1}, false},
		"none is allowed":  {waiterPool{}, false},
		"dialling failed":  {waiterPool{limit: 1, retryAt: time.Now().Add(time.Hour)}, false},
		"failed long ago":  {waiterPool{limit: 1, retryAt: time.Now().Add(-time.Hour)}, true},
		"one of two there": {waiterPool{limit: 2, size: 1}, true},
	} {
		if got := c.pool.hasRoom(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
