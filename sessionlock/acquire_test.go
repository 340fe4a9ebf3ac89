package sessionlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

func acquire(t testing.TB, m *sessionlock.Manager, k lockkey.Key, opts ...sessionlock.AcquireOption) *sessionlock.Lock {
	t.Helper()
	l, err := m.Acquire(t.Context(), k, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// acquiring acquires in the background.
func acquiring(t testing.TB, m *sessionlock.Manager, k lockkey.Key, opts ...sessionlock.AcquireOption) <-chan *sessionlock.Lock {
	got := make(chan *sessionlock.Lock)
	go func() {
		l, err := m.Acquire(t.Context(), k, opts...)
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	return got
}

// contended is a key that one manager holds and another one waits for.
func contended(t testing.TB, holder, waiter *sessionlock.Manager) (held *sessionlock.Lock, got <-chan *sessionlock.Lock) {
	t.Helper()
	held = acquire(t, holder, pgtest.Key(t))
	return held, blocked(t, waiter, held.Key())
}

// blocked is acquiring that returns once the server makes it wait.
func blocked(t testing.TB, m *sessionlock.Manager, k lockkey.Key) <-chan *sessionlock.Lock {
	t.Helper()
	got := acquiring(t, m, k)
	pgtest.WaitBlocked(t, k, 1)
	return got
}

func release(t testing.TB, l *sessionlock.Lock) {
	t.Helper()
	if err := l.Release(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestAcquire_isHeldUntilRelease(t *testing.T) {
	t.Parallel()
	m := open(t)
	for _, k := range []lockkey.Key{pgtest.Key(t), pgtest.PairKey(t)} {
		l := acquire(t, m, k)
		held := pgtest.Locks(t, k)
		if len(held) != 1 || held[0].PID != l.PID() || held[0].Mode != "ExclusiveLock" {
			t.Errorf("%v: %+v, the lock says %d", k, held, l.PID())
		}
		if l.Key() != k || l.Err() != nil || !l.Token().IsZero() {
			t.Errorf("%v: key %v, err %v, token %v", k, l.Key(), l.Err(), l.Token())
		}
		release(t, l)
		if pgtest.Held(t, k) {
			t.Errorf("%v: held after Release", k)
		}
		if err := l.Release(t.Context()); !errors.Is(err, sessionlock.ErrReleased) {
			t.Errorf("%v: a second Release says %v", k, err)
		}
		if !errors.Is(l.Err(), sessionlock.ErrReleased) {
			t.Errorf("%v: after Release Err is %v", k, l.Err())
		}
		select {
		case <-l.Lost():
			t.Errorf("%v: released and lost", k)
		default:
		}
	}
}

func TestTryAcquire_refusedWhileHeldElsewhere(t *testing.T) {
	t.Parallel()
	a, b := open(t), open(t)
	k := pgtest.Key(t)
	l := acquire(t, a, k)
	for name, m := range map[string]*sessionlock.Manager{"same process": a, "other": b} {
		if _, err := m.TryAcquire(t.Context(), k); !errors.Is(err, sessionlock.ErrNotAcquired) {
			t.Errorf("%s: %v", name, err)
		}
	}
	release(t, l)
	l, err := b.TryAcquire(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	release(t, l)
}

func TestAcquire_waitsForAnotherProcess(t *testing.T) {
	t.Parallel()
	first, got := contended(t, open(t), open(t))
	release(t, first)
	release(t, <-got)
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	a, b := open(t), open(t)
	k := pgtest.Key(t)
	defer release(t, acquire(t, a, k))
	for name, m := range map[string]*sessionlock.Manager{"same process": a, "other": b} {
		_, err := m.Acquire(t.Context(), k, sessionlock.Timeout(50*time.Millisecond))
		if !errors.Is(err, sessionlock.ErrLockTimeout) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err = m.Acquire(ctx, k)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, sessionlock.ErrLockTimeout) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestExclusion_manyGoroutines(t *testing.T) {
	t.Parallel()
	managers := []*sessionlock.Manager{open(t), open(t), open(t)}
	k := pgtest.Key(t)
	var inside, total int
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			for range 20 {
				err := managers[i%3].Do(t.Context(), k, func(context.Context) error {
					inside++
					if inside != 1 {
						t.Error("two hold the lock")
					}
					total++
					inside--
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if total != 480 {
		t.Errorf("%d of 480", total)
	}
}
