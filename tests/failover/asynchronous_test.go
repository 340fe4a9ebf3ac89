package failover_test

import (
	"errors"
	"testing"
	"time"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// Without synchronous replication a promoted standby may not know the last leases of its
// primary. What is lost, and what is not:
//
//   - a lease that was acquired or renewed last: for the rest of its length two believe to
//     hold it. The first one is told at its next renewal.
//   - a release: the lease is taken until it would have run out.
//   - writes that were confirmed, under whatever lock.
//   - not the order of the tokens (L11), so the first holder's guarded writes are refused.
//
// synchronous_standby_names prevents all of it: see the tests of synchronous replication.
func TestAsynchronous_whatIsLostAndWhatIsNot(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	m, rival := p.leases(), p.leases()
	released, err := m.Acquire(t.Context(), lockkey.Of("released"), 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	caughtUp(t, p)
	p.disconnect()

	acquired, err := m.Acquire(t.Context(), lockkey.Of("acquired"), bound)
	if err != nil {
		t.Fatal(err)
	}
	var tokens []fence.Token
	for range 8 { // numbers that the standby never hears of
		l, err := m.Acquire(t.Context(), lockkey.Of("tokens"), bound)
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, l.Token())
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	db := p.pool()
	if !p.write(db, 1, acquired.Token(), "confirmed") {
		t.Error("a write was refused")
	}
	if err := released.Release(t.Context()); err != nil {
		t.Error(err)
	}
	p.fail()

	// Two believe to hold it, and one of them only can write.
	var second *lease.Lease
	eventually(t, "an answer of the promoted standby", func() bool {
		second, err = rival.TryAcquire(t.Context(), acquired.Key(), bound)
		return err == nil
	})
	if acquired.Err() != nil {
		t.Skipf("too slow a machine to see it: %v", acquired.Err())
	}
	if second.Token().Number <= acquired.Token().Number || second.Token().Number>>40 != 2 {
		t.Errorf("after %v came %v", acquired.Token(), second.Token())
	}
	if p.write(db, 2, acquired.Token(), "superseded") {
		t.Error("the first holder's write was accepted")
	}
	if !p.write(db, 2, second.Token(), "second") {
		t.Error("the second holder's write was refused")
	}
	eventually(t, "the first one is told", func() bool { err = acquired.Renew(t.Context()); return errors.Is(err, lease.ErrLost) })
	await(t, "Lost", acquired.Lost())

	// L11: numbers that the standby never heard of are not issued again.
	after, err := rival.Acquire(t.Context(), lockkey.Of("tokens"), bound, lease.Timeout(bound))
	if err != nil {
		t.Fatal(err)
	}
	for _, before := range tokens {
		if after.Token().Number <= before.Number {
			t.Errorf("%v was issued after %v", after.Token(), before)
		}
	}
	if w := p.writer(db, 1); w != "nobody" {
		t.Errorf("a write that the standby could not know: %q", w)
	}
	// The release was lost: it runs out instead.
	if _, err := rival.Acquire(t.Context(), released.Key(), bound, lease.Timeout(bound)); err != nil {
		t.Error(err)
	}
}

// caughtUp waits until the standby has all that the primary wrote.
func caughtUp(t testing.TB, p *pair) {
	t.Helper()
	db := p.pool()
	eventually(t, "a standby that has everything", func() bool {
		var behind bool
		err := db.QueryRowContext(t.Context(), "SELECT flush_lsn < pg_current_wal_flush_lsn() FROM pg_stat_replication").Scan(&behind)
		return err == nil && !behind
	})
}
