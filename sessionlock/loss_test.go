package sessionlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// bound is how long a test waits for something before it fails.
const bound = 30 * time.Second

// assertLost checks everything that tells a holder of a loss.
func assertLost(t testing.TB, m *sessionlock.Manager, l *sessionlock.Lock) {
	t.Helper()
	pgtest.Await(t, "Lost", l.Lost())
	if !errors.Is(l.Err(), sessionlock.ErrLost) {
		t.Errorf("Err is %v", l.Err())
	}
	err := l.Release(context.Background())
	if !errors.Is(err, sessionlock.ErrLost) {
		t.Errorf("Release says %v", err)
	}
	if ended := (*holder.Error)(nil); !errors.As(err, &ended) || ended.Proven.IsZero() || ended.Proven.After(time.Now()) {
		t.Errorf("%v does not say when the lock was known to be held", err)
	}
}

// lostBy acquires a lock that is lost when something happens.
func lostBy(t testing.TB, m *sessionlock.Manager, k lockkey.Key, happens func() error) *sessionlock.Lock {
	t.Helper()
	l := acquire(t, m, k)
	if err := happens(); err != nil {
		t.Fatal(err)
	}
	assertLost(t, m, l)
	return l
}

func TestLoss_terminatedBackend(t *testing.T) {
	t.Parallel()
	m := open(t)
	k, other := pgtest.Key(t), pgtest.Key(t, "other")
	l := acquire(t, m, k)
	done := make(chan error)
	entered := make(chan struct{})
	go func() {
		done <- m.Do(t.Context(), other, func(ctx context.Context) error {
			close(entered)
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), sessionlock.ErrLost) {
				t.Errorf("the cause is %v", context.Cause(ctx))
			}
			return nil
		})
	}()
	pgtest.Await(t, "Do", entered)
	pgtest.Kill(t, l.PID())
	assertLost(t, m, l)
	if err := <-done; !errors.Is(err, sessionlock.ErrLost) {
		t.Errorf("Do says %v", err)
	}
	again := acquire(t, m, k)
	if again.PID() == l.PID() {
		t.Error("the same backend")
	}
	release(t, again)
}

func TestLoss_crashedServer(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	m := openAt(t, server.DSN("postgres"))
	k := lockkey.Of("a")
	lostBy(t, m, k, server.Crash)
	if _, err := m.TryAcquire(t.Context(), k); err == nil {
		t.Error("a server that is down gave a lock")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := m.Acquire(ctx, k); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Acquire says %v", err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	release(t, acquire(t, m, k))
}

// Each way in which a connection can end, and what the holder is told.
func TestLoss_connection(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*wiretap.Proxy){
		"cut":     (*wiretap.Proxy).Cut,
		"reset":   (*wiretap.Proxy).ResetConnections,
		"stalled": (*wiretap.Proxy).Stall,
		"deaf":    (*wiretap.Proxy).StallAnswers,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, dsn := pgtest.Tap(t, pgtest.DSN(t))
			m := openAt(t, dsn, sessionlock.Heartbeat(time.Second))
			k := pgtest.Key(t)
			l := acquire(t, m, k)
			began := time.Now()
			end(p)
			assertLost(t, m, l)
			took := time.Since(began)
			if silent := name == "stalled" || name == "deaf"; silent != (took > time.Second) || took > 3500*time.Millisecond {
				t.Errorf("known after %s", took)
			}
			p.Resume()
			release(t, acquire(t, m, k))
		})
	}
}

func TestLoss_pausedServer(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	m := openAt(t, server.DSN("postgres"), sessionlock.Heartbeat(time.Second))
	k := lockkey.Of("a")
	lostBy(t, m, k, server.Pause)
	waiting := acquiring(t, m, k)
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	release(t, <-waiting)
}
