package failover_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// With synchronous replication a promoted standby knows every lease that anybody believes
// in and every token that anybody was given.
func TestSynchronous_leasesAndTokensSurvive(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.synchronous()
	m, rival := p.leases(lease.Owner("before")), p.leases()
	const n = 20
	var held []*lease.Lease
	for i := range n {
		l, err := m.Acquire(t.Context(), lockkey.Of("job", i), bound)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, l)
	}
	db := p.pool()
	for i, l := range held {
		if !p.write(db, i+1, l.Token(), l.Token().String()) {
			t.Fatalf("%s: its own write was refused", l.Token())
		}
	}
	p.fail()
	for i, l := range held {
		if err := l.Err(); err != nil {
			t.Errorf("%s: %v", l.Key(), err)
		}
		var err error
		eventually(t, "an answer of the promoted standby", func() bool {
			_, err = rival.TryAcquire(t.Context(), l.Key(), time.Second)
			return errors.Is(err, lease.ErrNotAcquired) || err == nil
		})
		if err == nil {
			t.Fatalf("%s: taken from its holder", l.Key())
		}
		eventually(t, "a renewal by the promoted standby", func() bool { err = l.Renew(t.Context()); return err == nil || errors.Is(err, lease.ErrLost) })
		if err != nil {
			t.Errorf("%s: %v", l.Key(), err)
		}
		if w := p.writer(db, i+1); w != l.Token().String() {
			t.Errorf("the write of %s is gone: %q", l.Token(), w)
		}
	}
	// Who holds it goes on writing, until somebody else does.
	first := held[0]
	if !p.write(db, 1, first.Token(), "after the promotion") {
		t.Error("the holder's write was refused after the promotion")
	}
	if err := first.Release(t.Context()); err != nil {
		t.Error(err)
	}
	next, err := rival.Acquire(t.Context(), first.Key(), bound)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := first.Token().Number, next.Token().Number; b <= a || b>>40 != 2 {
		t.Errorf("after %v came %v", first.Token(), next.Token())
	}
	if p.write(db, 1, first.Token(), "superseded") {
		t.Error("a superseded write was accepted")
	}
	if !p.write(db, 1, next.Token(), "next") {
		t.Error("the next holder's write was refused")
	}
}

// P14: session locks die with their server; their holders hear of it, and what they write
// afterwards is refused.
func TestSynchronous_sessionLocksAreLost(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.synchronous()
	m, rival := p.sessions(), p.sessions()
	const n = 10
	var held []*sessionlock.Lock
	for i := range n {
		l, err := m.Acquire(t.Context(), lockkey.Of("singleton", i), sessionlock.Fenced())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, l)
	}
	db := p.pool()
	p.fail()
	for i, l := range held {
		await(t, "the loss of a session lock", l.Lost())
		if err := l.Err(); !errors.Is(err, sessionlock.ErrLost) {
			t.Errorf("%v", err)
		}
		next, err := rival.Acquire(t.Context(), l.Key(), sessionlock.Fenced(), sessionlock.Timeout(bound))
		if err != nil {
			t.Fatal(err)
		}
		if next.Token().Number <= l.Token().Number {
			t.Errorf("after %v came %v", l.Token(), next.Token())
		}
		if p.write(db, i+1, l.Token(), "superseded") {
			t.Errorf("%s wrote after %s", l.Token(), next.Token())
		}
		if !p.write(db, i+1, next.Token(), "next") {
			t.Errorf("the write of %s was refused", next.Token())
		}
	}
}

// L11: with a standby that cannot be reached nothing is granted: who is told to hold a
// lease holds one that survives.
func TestSynchronous_nothingIsGrantedThatCouldBeLost(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	m, rival := p.leases(), p.leases()
	before, err := m.Acquire(t.Context(), lockkey.Of("before"), bound)
	if err != nil {
		t.Fatal(err)
	}
	p.synchronous()
	caughtUp(t, p) // with what was acquired before it was synchronous
	p.disconnect()
	if l, err := m.Acquire(t.Context(), lockkey.Of("unconfirmed"), bound, lease.Timeout(2*time.Second)); !errors.Is(err, lease.ErrLockTimeout) {
		t.Errorf("granted without the standby: %v, %v", l, err)
	}
	p.fail()
	var next *lease.Lease
	eventually(t, "an answer of the promoted standby", func() bool {
		next, err = rival.TryAcquire(t.Context(), lockkey.Of("unconfirmed"), bound)
		return err == nil
	})
	if next.Err() != nil || before.Err() != nil {
		t.Errorf("%v, %v", next.Err(), before.Err())
	}
	if _, err := rival.TryAcquire(t.Context(), before.Key(), bound); !errors.Is(err, lease.ErrNotAcquired) {
		t.Errorf("the lease from before the standby was gone: %v", err)
	}
}

// Work under leases that spans the failover: whoever waits gets its turn on the promoted
// standby, one after the other, without being told to try again.
func TestSynchronous_waitersGoOnAfterTheFailover(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.synchronous()
	k := lockkey.Of("queue")
	holder := p.leases()
	l, err := holder.Acquire(t.Context(), k, bound)
	if err != nil {
		t.Fatal(err)
	}
	const n = 6
	tokens, errs := make(chan int64, n), make(chan error, n)
	for i := range n {
		m := p.leases(lease.Owner(fmt.Sprint("waiter ", i)))
		go func() {
			next, err := m.Acquire(t.Context(), k, 5*time.Second, lease.Timeout(bound))
			if err != nil {
				errs <- err
				return
			}
			tokens <- next.Token().Number
			errs <- next.Release(t.Context())
		}()
	}
	p.fail()
	eventually(t, "the release on the promoted standby", func() bool { err := l.Release(t.Context()); return err == nil || errors.Is(err, lease.ErrReleased) })
	last := l.Token().Number
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	close(tokens)
	for token := range tokens {
		if token <= last || token>>40 != 2 {
			t.Errorf("token %d after %d", token, last)
		}
		last = token
	}
}
