package sessionlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

func TestShared_holdTogetherExclusiveAlone(t *testing.T) {
	t.Parallel()
	a, b := open(t), open(t)
	k := pgtest.Key(t)
	locks := sessionlock.Locks{
		acquire(t, a, k, sessionlock.Shared()), acquire(t, a, k, sessionlock.Shared()), acquire(t, b, k, sessionlock.Shared()),
	}
	for _, m := range []*sessionlock.Manager{a, b} {
		if _, err := m.TryAcquire(t.Context(), k); !errors.Is(err, sessionlock.ErrNotAcquired) {
			t.Errorf("exclusive beside shared: %v", err)
		}
	}
	// P7: the server shows one row for a session, however often it holds the lock.
	release(t, locks[0])
	if held := pgtest.Locks(t, k); len(held) != 2 {
		t.Errorf("one of two released, and %+v", held)
	}
	if err := locks[1:].Release(t.Context()); err != nil {
		t.Error(err)
	}
	release(t, acquire(t, a, k))
}

// Readers that keep coming do not starve a writer.
func TestShared_writerGetsItsTurn(t *testing.T) {
	t.Parallel()
	for name, writer := range map[string]func(readers *sessionlock.Manager) *sessionlock.Manager{
		"same process": func(readers *sessionlock.Manager) *sessionlock.Manager { return readers },
		"other":        func(*sessionlock.Manager) *sessionlock.Manager { return open(t) },
	} {
		readers := open(t)
		w := writer(readers)
		k := pgtest.Key(t, name)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var reads atomic.Int64
		for range 4 {
			wg.Go(func() {
				for ctx.Err() == nil {
					l, err := readers.Acquire(ctx, k, sessionlock.Shared())
					if err != nil {
						continue
					}
					reads.Add(1)
					release(t, l)
				}
			})
		}
		for range 3 {
			l, err := w.Acquire(t.Context(), k, sessionlock.Timeout(bound))
			if err != nil {
				t.Fatalf("%s: after %d reads: %v", name, reads.Load(), err)
			}
			release(t, l)
		}
		stop()
		wg.Wait()
	}
}

// P8: the server would grant the lock again to the session that holds it.
func TestAcquire_refusesToWaitForItself(t *testing.T) {
	t.Parallel()
	m, other := open(t), open(t)
	k := pgtest.Key(t)
	err := m.Do(t.Context(), k, func(ctx context.Context) error {
		if _, err := m.Acquire(ctx, k.Named("another name")); !errors.Is(err, sessionlock.ErrReentrant) {
			t.Errorf("Acquire says %v", err)
		}
		if _, err := m.TryAcquire(ctx, k, sessionlock.Shared()); !errors.Is(err, sessionlock.ErrReentrant) {
			t.Errorf("TryAcquire says %v", err)
		}
		if _, err := m.AcquireAll(ctx, lockkey.Of("free"), k); !errors.Is(err, sessionlock.ErrReentrant) {
			t.Errorf("AcquireAll says %v", err)
		}
		if _, err := other.TryAcquire(ctx, k); !errors.Is(err, sessionlock.ErrNotAcquired) {
			t.Errorf("another manager says %v", err)
		}
		inner := pgtest.Key(t, "inner")
		return m.Do(ctx, inner, func(ctx context.Context) error {
			if _, err := m.Acquire(ctx, k); !errors.Is(err, sessionlock.ErrReentrant) {
				t.Errorf("from the inner context: %v", err)
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}

func TestBind_endsWithTheLock(t *testing.T) {
	t.Parallel()
	m := open(t)
	l := acquire(t, m, pgtest.Key(t))
	stopped, stop := l.Bind(t.Context())
	bound, stopBound := l.Bind(t.Context())
	defer stopBound()
	stop()
	if !errors.Is(context.Cause(stopped), context.Canceled) || l.Err() != nil {
		t.Errorf("stopped: %v; the lock: %v", context.Cause(stopped), l.Err())
	}
	if bound.Err() != nil {
		t.Errorf("ended too early: %v", bound.Err())
	}
	release(t, l)
	late, stopLate := l.Bind(t.Context())
	defer stopLate()
	for what, ctx := range map[string]context.Context{"bound before Release": bound, "bound after Release": late} {
		if !errors.Is(context.Cause(ctx), sessionlock.ErrReleased) {
			t.Errorf("%s: the cause is %v", what, context.Cause(ctx))
		}
	}
}

// acquiringAll acquires in the background.
func acquiringAll(t testing.TB, m *sessionlock.Manager, keys []lockkey.Key) <-chan sessionlock.Locks {
	got := make(chan sessionlock.Locks)
	go func() {
		locks, err := m.AcquireAll(t.Context(), keys...)
		if err != nil {
			t.Error(err)
		}
		got <- locks
	}()
	return got
}

func TestAcquireAll_allOrNone(t *testing.T) {
	t.Parallel()
	a, b := open(t), open(t)
	k := []lockkey.Key{pgtest.Key(t, 0), pgtest.Key(t, 1), pgtest.Key(t, 2), pgtest.PairKey(t)}
	locks, err := a.AcquireAll(t.Context(), k[2], k[0], k[3], k[1], k[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(locks) != 4 {
		t.Errorf("%d locks", len(locks))
	}
	if err := locks.Release(t.Context()); err != nil {
		t.Error(err)
	}
	for _, k := range k {
		if pgtest.Held(t, k) {
			t.Errorf("%v: held after Release", k)
		}
	}

	blocker := acquire(t, b, k[1])
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := a.AcquireAll(ctx, k...)
		failed <- err
	}()
	pgtest.WaitBlocked(t, k[1], 1)
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	pgtest.AssertFree(t, k[0], k[2], k[3])

	done := acquiringAll(t, a, k)
	pgtest.WaitBlocked(t, k[1], 1)
	release(t, blocker)
	if err := (<-done).Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// L8: nobody detects deadlocks of session locks, so AcquireAll avoids them.
func TestAcquireAll_noDeadlock(t *testing.T) {
	t.Parallel()
	managers := []*sessionlock.Manager{open(t), open(t)}
	k := []lockkey.Key{pgtest.Key(t, 0), pgtest.Key(t, 1), pgtest.Key(t, 2)}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 10 {
				locks, err := managers[g%2].AcquireAll(t.Context(), k[(g+i)%3], k[(g+2*i+1)%3], k[i%3])
				if err != nil {
					t.Error(err)
					return
				}
				if err := locks.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// A key is released on the server after a bounded number of hand-overs, so another process gets its turn.
func TestHandOver_doesNotStarveOthers(t *testing.T) {
	t.Parallel()
	greedy, other := open(t), open(t)
	k := pgtest.Key(t)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var turns atomic.Int64
	busy := make(chan struct{})
	for range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				l, err := greedy.Acquire(ctx, k)
				if err != nil {
					continue
				}
				if turns.Add(1) == 100 {
					close(busy)
				}
				release(t, l)
			}
		})
	}
	<-busy // the greedy ones are running
	for range 5 {
		before := turns.Load()
		l, err := other.Acquire(t.Context(), k, sessionlock.Timeout(bound))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("after %d turns of the others", turns.Load()-before)
		release(t, l)
	}
	stop()
	wg.Wait()
}

// L7: one slot serves many contended keys, and each gets its turn.
func TestWaiters_slotsRotate(t *testing.T) {
	t.Parallel()
	holder, m := open(t), open(t, sessionlock.MaxWaiters(1))
	const n = 4
	var held sessionlock.Locks
	got := make(chan *sessionlock.Lock, n)
	keys := make([]lockkey.Key, n)
	for i := range n {
		keys[i] = pgtest.Key(t, i)
		held = append(held, acquire(t, holder, keys[i]))
		go func() {
			l, err := m.Acquire(t.Context(), keys[i])
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
	}
	for _, k := range keys {
		pgtest.WaitBlocked(t, k, 1) // each key has its turn
	}
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
	for range n {
		release(t, <-got)
	}
}

// If somebody cancels a wait, it is repeated. A lasting error is returned to the caller.
func TestWaiting_isCancelledByAnAdministrator(t *testing.T) {
	t.Parallel()
	holder, m := open(t), open(t, sessionlock.MaxWaiters(1))
	k := pgtest.Key(t)
	l := acquire(t, holder, k)
	got := make(chan error, 1)
	acquireAndRelease := func() {
		again, err := m.Acquire(t.Context(), k)
		if err == nil {
			err = again.Release(t.Context())
		}
		got <- err
	}
	go acquireAndRelease()
	admin := pgtest.Conn(t)
	cancel := func() {
		t.Helper()
		pgtest.WaitBlocked(t, k, 1)
		for _, waiting := range pgtest.Locks(t, k) {
			if waiting.Granted {
				continue
			}
			if _, err := admin.Exec(t.Context(), "SELECT pg_cancel_backend($1)", waiting.PID); err != nil {
				t.Fatal(err)
			}
		}
	}
	cancel()
	pgtest.WaitBlocked(t, k, 1)
	for len(got) == 0 {
		if _, err := admin.Exec(t.Context(), "SELECT pg_cancel_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = $1", objid(k)); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-got; err == nil || !strings.Contains(err.Error(), "57014") {
		t.Errorf("after being cancelled all the time: %v", err)
	}
	go acquireAndRelease()
	cancel()
	pgtest.WaitBlocked(t, k, 1)
	release(t, l)
	if err := <-got; err != nil {
		t.Errorf("after being cancelled once: %v", err)
	}
}

// objid is the lower half of a key, as pg_locks shows it.
func objid(k lockkey.Key) uint32 {
	id, _ := k.Int64()
	return uint32(id)
}

// A goroutine that waits never delays another one's release.
func TestWaiting_delaysNobody(t *testing.T) {
	t.Parallel()
	a, b := open(t), open(t)
	blocked, free := pgtest.Key(t), pgtest.Key(t, "free")
	blocker := acquire(t, a, blocked)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waiting := make(chan error)
	go func() {
		_, err := b.Acquire(ctx, blocked)
		waiting <- err
	}()
	pgtest.WaitBlocked(t, blocked, 1)
	for range 100 {
		began := time.Now()
		release(t, acquire(t, b, free))
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("took %s", took)
		}
	}
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	release(t, blocker)
}
