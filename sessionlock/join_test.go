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

// However long the first of them stays.
func TestShared_anyNumberHoldTogether(t *testing.T) {
	t.Parallel()
	m := open(t)
	k := pgtest.Key(t)
	var locks sessionlock.Locks
	for range 60 {
		l, err := m.Acquire(t.Context(), k, sessionlock.Shared(), sessionlock.Timeout(bound))
		if err != nil {
			t.Fatalf("after %d: %v", len(locks), err)
		}
		locks = append(locks, l)
		l, err = m.TryAcquire(t.Context(), k, sessionlock.Shared())
		if err != nil {
			t.Fatalf("after %d: %v", len(locks), err)
		}
		locks = append(locks, l)
	}
	fair := acquire(t, m, k, sessionlock.Shared(), sessionlock.Fair())
	if err := append(locks, fair).Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// A waiter for the shared holders of another process goes before callers that come later, as in the server's own queue. Once it has given up, they
// no longer wait for it.
func TestShared_whoWaitsElsewhereGoesFirst(t *testing.T) {
	t.Parallel()
	readers := open(t)
	k := pgtest.Key(t)
	locks := sessionlock.Locks{acquire(t, readers, k, sessionlock.Shared())}
	giveUp := waitElsewhere(t, k)
	if _, err := readers.TryAcquire(t.Context(), k, sessionlock.Shared(), sessionlock.Fair()); !errors.Is(err, sessionlock.ErrNotAcquired) {
		t.Errorf("Fair joins while another process waits: %v", err)
	}
	refused := false
	for len(locks) < 200 && !refused {
		l, err := readers.TryAcquire(t.Context(), k, sessionlock.Shared())
		if refused = errors.Is(err, sessionlock.ErrNotAcquired); !refused && err != nil {
			t.Fatal(err)
		}
		if err == nil {
			locks = append(locks, l)
		}
	}
	if !refused {
		t.Errorf("%d readers have joined and the writer waits", len(locks))
	}
	joining := acquiring(t, readers, k, sessionlock.Shared())
	select {
	case l := <-joining:
		t.Error("a reader joined before the writer")
		locks = append(locks, l)
	case <-time.After(150 * time.Millisecond):
		giveUp()
		select {
		case l := <-joining:
			locks = append(locks, l)
		case <-time.After(bound):
			t.Fatal("the writer has given up, and the reader still waits")
		}
	}
	if err := locks.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// waitElsewhere makes a connection of another program wait for k without a break. That connection gives up, or gets k and releases it at once.
func waitElsewhere(t testing.TB, k lockkey.Key) (giveUp func()) {
	t.Helper()
	waiter, admin := pgtest.Conn(t), pgtest.Conn(t)
	id, _ := k.Int64()
	over := make(chan struct{})
	go func() {
		defer close(over)
		// The error says that it was cancelled.
		_, _ = waiter.Exec(context.WithoutCancel(t.Context()), "SELECT pg_advisory_lock($1), pg_advisory_unlock($1)", id)
	}()
	pgtest.WaitBlocked(t, k, 1)
	stop := sync.OnceFunc(func() {
		if _, err := admin.Exec(context.WithoutCancel(t.Context()), "SELECT pg_cancel_backend($1)", waiter.PgConn().PID()); err != nil {
			t.Error(err)
		}
		<-over
	})
	t.Cleanup(stop)
	return stop
}

// If a waiter leaves the queue, the later ones can go on.
func TestShared_joinsWhenTheWriterBeforeItLeaves(t *testing.T) {
	t.Parallel()
	m := open(t)
	k := pgtest.Key(t)
	first := acquire(t, m, k, sessionlock.Shared())
	ctx, leave := context.WithCancel(t.Context())
	writing := make(chan error)
	go func() {
		_, err := m.Acquire(ctx, k)
		writing <- err
	}()
	for err := error(nil); err == nil; { // until the writer is in the queue
		var l *sessionlock.Lock
		if l, err = m.TryAcquire(t.Context(), k, sessionlock.Shared()); err == nil {
			release(t, l)
		}
	}
	joining := acquiring(t, m, k, sessionlock.Shared())
	for sessionlock.Arrivals(m) < 2 {
		<-time.After(100 * time.Microsecond)
	}
	leave()
	if err := <-writing; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	release(t, <-joining)
	release(t, first)
}
