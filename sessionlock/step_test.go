package sessionlock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// steps are the statements of an acquisition and its release, each by a part of its text.
var steps = []struct {
	name, statement string
	contended       bool
}{
	{name: "try", statement: "NOT pg_catalog.pg_try_advisory_lock(k)"},
	{name: "limit", statement: "set_config('lock_timeout', $1", contended: true},
	{name: "wait", statement: "SELECT pg_catalog.pg_advisory_xact_lock($1", contended: true},
	{name: "keep", statement: "SELECT pg_catalog.pg_advisory_lock($1", contended: true},
	{name: "token", statement: "INSERT INTO gormlock_fence"},
	{name: "unlock", statement: "NOT pg_catalog.pg_advisory_unlock(k)"},
}

// stage is a manager behind a proxy that does something to one statement, once.
type stage struct {
	t     *testing.T
	proxy *wiretap.Proxy
	m     *sessionlock.Manager
	key   lockkey.Key
	free  func()        // makes another holder release the key, if there is one
	hit   chan struct{} // closed when the statement was met
}

func newStage(t *testing.T, statement string, action wiretap.Action, contended bool, opts ...sessionlock.Option) *stage {
	t.Helper()
	p, dsn := pgtest.Tap(t, migrate(t))
	s := &stage{t: t, proxy: p, m: openAt(t, dsn, opts...), key: pgtest.Key(t), free: func() {}, hit: make(chan struct{})}
	if contended {
		holder := open(t, sessionlock.Heartbeat(time.Minute)) // a long heartbeat, so it keeps the key even if the machine stands still for a while
		l := acquire(t, holder, s.key)
		s.free = sync.OnceFunc(func() { release(t, l) })
		t.Cleanup(s.free)
	}
	var once sync.Once
	p.OnQuery(func(sql string) wiretap.Action {
		do := wiretap.Pass
		if strings.Contains(sql, statement) {
			once.Do(func() {
				do = action
				close(s.hit)
			})
		}
		return do
	})
	return s
}

// awaitHeld returns when the statement is held back, not only met. A statement that is held back after the test has let everything go on stays so
// until the end of the test.
func (s *stage) awaitHeld() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), bound)
	defer cancel()
	if err := s.proxy.AwaitHeld(ctx); err != nil {
		s.t.Fatalf("the statement is not held back: %v", err)
	}
}

// eachStep runs a test at each step, once with the statement lost and once with its answer lost.
func eachStep(t *testing.T, before, after wiretap.Action, test func(t *testing.T, step string, s *stage)) {
	t.Helper()
	for _, step := range steps {
		for name, action := range map[string]wiretap.Action{"before": before, "after": after} {
			t.Run(step.name+" "+name, func(t *testing.T) {
				t.Parallel()
				test(t, step.name, newStage(t, step.statement, action, step.contended))
			})
		}
	}
}

// Whatever is on its way when a session ends is sent again or reported. A lock is never both held and not held.
func TestLoss_atEachStep(t *testing.T) {
	t.Parallel()
	eachStep(t, wiretap.CutRequest, wiretap.CutAnswer, func(t *testing.T, step string, s *stage) {
		go func() {
			<-s.hit
			s.free()
		}()
		l, err := s.m.Acquire(t.Context(), s.key, sessionlock.Fenced(), sessionlock.Timeout(bound))
		if step == "token" {
			// Nobody knows which number was issued. The lock is released.
			if err == nil || errors.Is(err, sessionlock.ErrLockTimeout) {
				t.Errorf("got %v", err)
			}
			pgtest.AssertFree(t, s.key)
			l, err = s.m.Acquire(t.Context(), s.key, sessionlock.Fenced(), sessionlock.Timeout(bound))
		}
		if err != nil {
			t.Fatal(err)
		}
		held := pgtest.Locks(t, s.key)
		// P12: the server still lets a session wait after its client is gone.
		held = slices.DeleteFunc(held, func(l pgtest.Lock) bool { return !l.Granted })
		if l.Err() != nil || len(held) != 1 || held[0].PID != l.PID() {
			t.Errorf("the lock says %d and %v, the server %+v", l.PID(), l.Err(), held)
		}
		switch err := l.Release(t.Context()); {
		case step == "unlock" && !errors.Is(err, sessionlock.ErrLost), step != "unlock" && err != nil:
			t.Errorf("Release says %v", err)
		}
		pgtest.AssertFree(t, s.key)
		release(t, acquire(t, s.m, s.key))
	})
}

// A caller may leave at any step. A lock that is granted after that is released.
func TestCancel_atEachStep(t *testing.T) {
	t.Parallel()
	eachStep(t, wiretap.HoldRequest, wiretap.HoldAnswer, func(t *testing.T, step string, s *stage) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		acquired := make(chan *sessionlock.Lock, 1)
		failed := make(chan error, 1)
		go func() {
			l, err := s.m.Acquire(ctx, s.key, sessionlock.Fenced())
			if err == nil {
				acquired <- l
				err = l.Release(ctx)
			}
			failed <- err
		}()
		s.awaitHeld()
		s.free()
		cancel()
		began := time.Now()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		// The held-back answer may be the one that confirms the release.
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %s to leave", took)
		}
		if step == "unlock" {
			if l := <-acquired; !errors.Is(l.Err(), sessionlock.ErrReleased) {
				t.Errorf("Err is %v", l.Err())
			}
		}
		s.proxy.Resume()
		pgtest.AssertFree(t, s.key)
		l, err := s.m.Acquire(t.Context(), s.key, sessionlock.Fenced(), sessionlock.Timeout(bound))
		if err != nil {
			t.Fatal(err)
		}
		release(t, l)
	})
}

// Close does not wait for an answer that never comes, and waiters are told.
func TestClose_atEachStep(t *testing.T) {
	t.Parallel()
	eachStep(t, wiretap.HoldRequest, wiretap.HoldAnswer, func(t *testing.T, step string, s *stage) {
		failed := make(chan error, 1)
		go func() {
			l, err := s.m.Acquire(t.Context(), s.key, sessionlock.Fenced())
			if err == nil {
				err = l.Release(t.Context())
			}
			failed <- err
		}()
		s.awaitHeld()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := s.m.Close(ctx)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("Close took %s and says %v", took, err)
		}
		select {
		case err := <-failed:
			if !errors.Is(err, sessionlock.ErrClosed) {
				t.Errorf("who waits is told %v", err)
			}
		case <-time.After(bound):
			t.Error("who waits is not told")
		}
		s.proxy.Resume()
		s.free()
		pgtest.AssertFree(t, s.key)
	})
}
