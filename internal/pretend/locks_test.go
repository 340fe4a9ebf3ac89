package pretend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gormlock/gormlock/internal/lockid"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

var one, two = lockid.ID{Space: 1, ID: 1}, lockid.ID{Space: 2, ID: 1}

// waits starts a call that must wait, and returns when it waits.
func (l *Locks) waits(t *testing.T, ctx context.Context, owner any, id lockid.ID, shared bool) <-chan error {
	t.Helper()
	before := l.waiting(id)
	done := make(chan error, 1)
	go func() { done <- l.Acquire(ctx, owner, id, shared, true) }()
	for l.waiting(id) == before {
		select {
		case err := <-done:
			t.Fatalf("%v did not wait: %v", owner, err)
		default:
			runtime.Gosched()
		}
	}
	return done
}

func (l *Locks) waiting(id lockid.ID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.locks[id]; k != nil {
		return len(k.queue)
	}
	return 0
}

func (l *Locks) try(owner any, id lockid.ID, shared bool) error {
	return l.Acquire(context.Background(), owner, id, shared, false)
}

func TestLocks_queue(t *testing.T) {
	t.Parallel()
	var l Locks
	if err := errors.Join(l.try("a", one, true), l.try("b", one, true)); err != nil {
		t.Fatal(err)
	}
	writer := l.waits(t, t.Context(), "writer", one, false)
	if err := l.try("late", one, true); !errors.Is(err, ErrHeld) {
		t.Errorf("a reader passed a writer that waits: %v", err)
	}
	if err := l.try("a", one, true); err != nil {
		t.Errorf("a holder waits for who waits for it: %v", err)
	}
	late := l.waits(t, t.Context(), "late", one, true)
	l.Release("a", one, true)
	l.Release("b", one, true)
	if err := l.try("c", one, true); !errors.Is(err, ErrHeld) {
		t.Errorf("free after one of two releases: %v", err)
	}
	l.Release("a", one, true)
	if err := <-writer; err != nil {
		t.Error(err)
	}
	l.Release("writer", one, false)
	if err := <-late; err != nil {
		t.Error(err)
	}
	l.Release("late", one, true)
	l.Release("late", one, true) // once too often
	if len(l.locks) != 0 {
		t.Errorf("%d locks are left", len(l.locks))
	}
}

func TestLocks_gaveUp(t *testing.T) {
	t.Parallel()
	var l Locks
	if err := l.try("a", one, true); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	writer := l.waits(t, ctx, "writer", one, false)
	reader := l.waits(t, t.Context(), "reader", one, true)
	cancel()
	if err := <-writer; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := <-reader; err != nil {
		t.Errorf("who waited for a writer that gave up: %v", err)
	}
}

func TestLocks_deadlock(t *testing.T) {
	t.Parallel()
	var l Locks
	_, _ = l.try("a", one, false), l.try("b", two, false)
	a := l.waits(t, t.Context(), "a", two, true)
	if err := l.Acquire(t.Context(), "b", one, true, true); !sqlstate.Is(err, sqlstate.DeadlockDetected) {
		t.Errorf("two keys: %v", err)
	}
	l.Release("b", two, false)
	if err := <-a; err != nil {
		t.Error(err)
	}
	l.Release("a", one, false)
	l.Release("a", two, true)

	_, _ = l.try("a", one, true), l.try("b", one, true)
	a = l.waits(t, t.Context(), "a", one, false)
	if err := l.Acquire(t.Context(), "b", one, false, true); !sqlstate.Is(err, sqlstate.DeadlockDetected) {
		t.Errorf("shared, then exclusive: %v", err)
	}
	l.Release("b", one, true)
	if err := <-a; err != nil {
		t.Error(err)
	}
}

// TestLocks_exclude: whatever the order, an exclusive holder is alone, and no lock remains.
func TestLocks_exclude(t *testing.T) {
	t.Parallel()
	var l Locks
	var inside [3]atomic.Int64 // readers count 1, writers 1000
	var all sync.WaitGroup
	for n := range 8 {
		owner := fmt.Sprint(n)
		all.Go(func() {
			for range 300 {
				i, shared := rand.IntN(len(inside)), rand.IntN(2) == 0
				id, weight := lockid.ID{Space: 1, ID: int64(i)}, int64(1000)
				if shared {
					weight = 1
				}
				if err := l.Acquire(context.Background(), owner, id, shared, rand.IntN(3) > 0); err != nil {
					if !errors.Is(err, ErrHeld) {
						t.Error(err)
					}
					continue
				}
				if now := inside[i].Add(weight); now > 1000 || !shared && now != 1000 {
					t.Errorf("%d inside, shared %v", now, shared)
				}
				runtime.Gosched()
				inside[i].Add(-weight)
				l.Release(owner, id, shared)
			}
		})
	}
	all.Wait()
	if len(l.locks) != 0 {
		t.Errorf("%d locks are left", len(l.locks))
	}
}
