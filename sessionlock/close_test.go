package sessionlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/sessionlock"
)

func TestClose_tellsEverybody(t *testing.T) {
	t.Parallel()
	m, other := open(t), open(t)
	k, contended := pgtest.Key(t), pgtest.Key(t, "contended")
	l := acquire(t, m, k)
	blocker := acquire(t, other, contended)
	waiting := make(chan error, 2)
	go func() {
		_, err := m.Acquire(t.Context(), contended)
		waiting <- err
	}()
	pgtest.WaitBlocked(t, contended, 1)
	go func() {
		_, err := m.Acquire(t.Context(), k)
		waiting <- err
	}()
	began := time.Now()
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("Close took %s", took)
	}
	for range 2 {
		if err := <-waiting; !errors.Is(err, sessionlock.ErrClosed) {
			t.Errorf("a waiter was told %v", err)
		}
	}
	assertLost(t, m, l)
	if !errors.Is(l.Err(), sessionlock.ErrClosed) {
		t.Errorf("Err is %v", l.Err())
	}
	// P9: the lock is released before the connection ends.
	if pgtest.Held(t, k) {
		t.Error("held after Close")
	}
	if _, err := m.Acquire(t.Context(), k); !errors.Is(err, sessionlock.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	release(t, blocker)
}

func TestClose_silentServerIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	p, dsn := pgtest.Tap(t, pgtest.DSN(t))
	m, err := sessionlock.Open(t.Context(), dsn, sessionlock.Heartbeat(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	l := acquire(t, m, pgtest.Key(t))
	p.Stall()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := m.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close says %v", err)
	}
	assertLost(t, m, l)
	p.Cut()
}

// Whatever happened to its sessions, a closed manager leaves no lock, no connection and no goroutine. That is checked when all tests have ended.
func TestTorture_openAndCloseLeaveNothing(t *testing.T) {
	t.Parallel()
	k, contended := pgtest.Key(t), pgtest.Key(t, "contended")
	blocker := acquire(t, open(t), contended)
	p, dsn := pgtest.Tap(t, migrate(t))
	for i := range pgtest.Rounds(35, 1_050) {
		m, err := sessionlock.Open(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		l, err := m.Acquire(t.Context(), k, sessionlock.Timeout(bound), sessionlock.Fenced())
		if err != nil {
			t.Fatal(err)
		}
		waiting := make(chan error, 1)
		go func() {
			_, err := m.Acquire(t.Context(), contended)
			waiting <- err
		}()
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		switch i % 7 {
		case 0:
			release(t, l)
		case 1:
			p.Cut()
		case 2:
			p.ResetConnections()
		case 3:
			pgtest.Kill(t, l.PID())
		case 4:
			p.Refuse() // it cannot come back
			p.Cut()
		case 5:
			p.Stall()
			cancel()
		}
		if err := m.Close(ctx); i%7 == 6 && err != nil {
			t.Error(err) // in the other cases the connection may be gone
		}
		cancel()
		if err := <-waiting; !errors.Is(err, sessionlock.ErrClosed) {
			t.Errorf("who waited was told %v", err)
		}
		p.Cut()
		p.Resume()
		p.Admit()
	}
	release(t, blocker)
	pgtest.AssertFree(t, k, contended)
	for deadline := time.Now().Add(bound); p.Connections() > 0; {
		if <-time.After(time.Millisecond); time.Now().After(deadline) {
			t.Fatalf("%d connections are open", p.Connections())
		}
	}
}
