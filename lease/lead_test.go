package lease_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

func TestLead_oneAtATimeAndTheNextWhenItEnds(t *testing.T) {
	t.Parallel()
	a, b := rivals(t)
	k := lockkey.Of("report")
	leading, resign := make(chan context.Context), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- a.Lead(t.Context(), k, time.Minute, func(ctx context.Context) error {
			leading <- ctx
			<-resign
			return nil
		})
	}()
	ctx := <-leading
	if !a.Leading(k) || b.Leading(k) || a.Leading(lockkey.Of("other")) || a.Leading(lockkey.Key{}) {
		t.Error("Leading does not say who leads")
	}
	if carried := fence.FromContext(ctx); len(carried) != 1 || carried[0].IsZero() {
		t.Errorf("the ctx of a leader carries %v", carried)
	}
	second := make(chan error, 1)
	errDone := errors.New("done")
	go func() {
		second <- b.Lead(t.Context(), k, time.Minute, func(context.Context) error {
			if a.Leading(k) || !b.Leading(k) {
				t.Error("the one before leads still, or the new one does not")
			}
			return errDone
		})
	}()
	close(resign)
	if err := <-first; err != nil {
		t.Errorf("the first: %v", err)
	}
	if err := <-second; !errors.Is(err, errDone) {
		t.Errorf("the second: %v", err)
	}
	if a.Leading(k) || b.Leading(k) {
		t.Error("somebody leads after the end")
	}
	l := acquire(t, a, k, time.Minute)
	if a.Leading(k) {
		t.Error("a lease that nobody leads by makes a leader")
	}
	release(t, l)
}

// A leader that is cut off ends within its lease. Then the next one leads, and the first campaigns again.
func TestLead_campaignsAgainAfterALoss(t *testing.T) {
	t.Parallel()
	proxy, m, db := tapped(t)
	k := lockkey.Of("report")
	const ttl = 500 * time.Millisecond
	terms := make(chan context.Context)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- m.Lead(ctx, k, ttl, func(ctx context.Context) error {
			terms <- ctx
			<-ctx.Done()
			return ctx.Err() // that does not end Lead
		})
	}()
	first := <-terms
	proxy.Refuse()
	proxy.Cut()
	rival := open(t, db)
	led := make(chan struct{})
	go func() {
		defer close(led)
		if err := rival.Lead(t.Context(), k, time.Minute, func(context.Context) error {
			if first.Err() == nil || m.Leading(k) {
				t.Error("two lead")
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}()
	pgtest.Await(t, "the rival led", led)
	if !errors.Is(context.Cause(first), lease.ErrLost) {
		t.Errorf("the first term ended by %v", context.Cause(first))
	}
	proxy.Admit()
	second := <-terms
	if a, b := fence.FromContext(first)[0], fence.FromContext(second)[0]; b.Number < a.Number+2 {
		t.Errorf("terms %v and %v", a, b)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Lead: %v", err)
	}
	release(t, acquire(t, rival, k, time.Minute)) // it was given back
}

func TestLead_ends(t *testing.T) {
	t.Parallel()
	db := tables(t)
	m := open(t, db)
	t.Run("with ctx, after fn has returned", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		ended := false
		errFlush := errors.New("flush")
		err := m.Lead(ctx, lockkey.Of("ctx"), time.Minute, func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			ended = true
			return errFlush
		})
		if !errors.Is(err, context.Canceled) || !errors.Is(err, errFlush) || !ended {
			t.Errorf("got %v, and fn had returned: %v", err, ended)
		}
		release(t, acquire(t, m, lockkey.Of("ctx"), time.Minute))
		if err := m.Lead(ctx, lockkey.Of("ctx"), time.Minute, idle); !errors.Is(err, context.Canceled) {
			t.Errorf("a ctx that has ended: %v", err)
		}
	})
	t.Run("with ctx, though fn says nothing", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		if err := m.Lead(ctx, lockkey.Of("quiet"), time.Minute, func(context.Context) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("with the manager", func(t *testing.T) {
		t.Parallel()
		closing := open(t, db)
		err := closing.Lead(t.Context(), lockkey.Of("closed"), time.Minute, func(ctx context.Context) error {
			go func() { _ = closing.Close(context.WithoutCancel(ctx)) }()
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, lease.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if err := closing.Lead(t.Context(), lockkey.Of("closed"), time.Minute, idle); !errors.Is(err, lease.ErrClosed) {
			t.Errorf("closed before: %v", err)
		}
	})
	t.Run("with a panic, which goes on up", func(t *testing.T) {
		t.Parallel()
		func() {
			defer func() {
				if recover() != "up" {
					t.Error("the panic is gone")
				}
			}()
			_ = m.Lead(t.Context(), lockkey.Of("panic"), time.Minute, func(context.Context) error { panic("up") })
		}()
		release(t, acquire(t, open(t, db), lockkey.Of("panic"), time.Minute))
	})
	t.Run("without a campaign where that makes no sense", func(t *testing.T) {
		t.Parallel()
		if err := m.Lead(t.Context(), lockkey.Key{}, time.Minute, idle); !errors.Is(err, lockkey.ErrInvalid) {
			t.Errorf("no key: %v", err)
		}
		if err := m.Lead(t.Context(), lockkey.Of("x"), 0, idle); !errors.Is(err, lease.ErrOption) {
			t.Errorf("no length: %v", err)
		}
	})
}

// A leader that ends by itself is done, even if its error looks like a loss.
func TestLead_anErrorOfFnIsNoLoss(t *testing.T) {
	t.Parallel()
	m := open(t, tables(t))
	calls := 0
	err := m.Lead(t.Context(), lockkey.Of("report"), time.Minute, func(context.Context) error {
		calls++
		return lease.ErrLost // of another lease
	})
	if !errors.Is(err, lease.ErrLost) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestDo_try(t *testing.T) {
	t.Parallel()
	a, b := rivals(t)
	k := lockkey.Of("report")
	l := acquire(t, a, k, time.Minute)
	if err := b.Do(t.Context(), k, time.Minute, func(context.Context) error { panic("it runs") }, lease.Try()); !errors.Is(err, lease.ErrNotAcquired) {
		t.Errorf("held: %v", err)
	}
	if _, err := b.Acquire(t.Context(), k, time.Minute, lease.Try()); !errors.Is(err, lease.ErrNotAcquired) {
		t.Errorf("Acquire: %v", err)
	}
	release(t, l)
	ran := false
	if err := b.Do(t.Context(), k, time.Minute, func(context.Context) error { ran = true; return nil }, lease.Try()); err != nil || !ran {
		t.Errorf("free: %v, ran %v", err, ran)
	}
}

func TestElector(t *testing.T) {
	t.Parallel()
	proxy, m, db := tapped(t)
	k := lockkey.Of("jobs")
	a, b := lease.Elector(m, k, 500*time.Millisecond), lease.Elector(open(t, db), k, time.Minute)
	for range 3 {
		if err := a.IsLeader(context.Background()); err != nil {
			t.Fatalf("who asks first: %v", err)
		}
		if err := b.IsLeader(context.Background()); !errors.Is(err, lease.ErrNotAcquired) {
			t.Fatalf("who asks second: %v", err)
		}
	}
	proxy.Stall() // a network that went silent
	asked := time.Now()
	for a.IsLeader(context.Background()) == nil { // until its lease runs out
		if time.Since(asked) > bound {
			t.Fatal("it leads for ever")
		}
	}
	if d := time.Since(asked); d > 10*time.Second {
		t.Errorf("the answer took %s", d)
	}
	if err := b.IsLeader(context.Background()); err != nil {
		t.Errorf("the next one: %v", err)
	}
	proxy.Cut()
	proxy.Resume()
	if err := b.Resign(t.Context()); err != nil {
		t.Error(err)
	}
	if err := b.IsLeader(context.Background()); !errors.Is(err, lease.ErrReleased) {
		t.Errorf("who resigned: %v", err)
	}
	if err := b.Resign(t.Context()); err != nil {
		t.Errorf("a second time: %v", err)
	}
	for began := time.Now(); a.IsLeader(context.Background()) != nil; {
		if time.Since(began) > bound {
			t.Fatal("the first one does not lead again")
		}
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := a.IsLeader(context.Background()); !errors.Is(err, lease.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if err := lease.Elector(m, lockkey.Key{}, time.Minute).IsLeader(t.Context()); !errors.Is(err, lockkey.ErrInvalid) {
		t.Errorf("no key: %v", err)
	}
}
