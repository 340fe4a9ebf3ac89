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

// If this process knows an answer itself, it gives it at once, even while an answer for which many wait does not come.
func TestFlight_stuck_holdsUpNobodyElse(t *testing.T) {
	t.Parallel()
	p, dsn := pgtest.Tap(t, pgtest.DSN(t))
	m := openAt(t, dsn)
	mine, handed := pgtest.Key(t, "mine"), pgtest.Key(t, "handed")
	held, first := acquire(t, m, mine), acquire(t, m, handed)
	second := make(chan *sessionlock.Lock, 1)
	go func() {
		l, err := m.Acquire(context.Background(), handed)
		if err != nil {
			t.Error(err)
		}
		second <- l
	}()
	for sessionlock.Arrivals(m) < 1 {
		<-time.After(100 * time.Microsecond)
	}

	p.Reset()
	p.StallAnswers()
	keys := make([]lockkey.Key, 100)
	for i := range keys {
		keys[i] = pgtest.Key(t, i)
	}
	leaving, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := m.AcquireAll(leaving, keys...)
		left <- err
	}()
	for count(p.Statements(), "pg_try_advisory_lock") == 0 {
		<-time.After(100 * time.Microsecond)
	}
	leave() // so that no caller reads the answer
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who left: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for range 100 {
		if _, err := m.TryAcquire(ctx, mine); !errors.Is(err, sessionlock.ErrNotAcquired) {
			t.Fatalf("of what is held here: %v", err)
		}
	}
	if err := first.Release(ctx); err != nil {
		t.Errorf("while somebody here waits: %v", err)
	}
	select {
	case l := <-second:
		defer release(t, l)
	case <-ctx.Done():
		t.Error("who waits here has not got it")
	}
	p.Resume()
	release(t, held)
}

// A caller that comes while others wait for their answer does not wait for that answer too.
func TestFlight_fewKeys_theNextFollowsAtOnce(t *testing.T) {
	t.Parallel()
	p, dsn := pgtest.Tap(t, pgtest.DSN(t))
	m := openAt(t, dsn, sessionlock.Heartbeat(time.Minute))
	p.Reset()
	p.StallAnswers()
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() { release(t, acquire(t, m, pgtest.Key(t, i))) })
		deadline := time.Now().Add(5 * time.Second)
		for count(p.Statements(), "pg_try_advisory_lock") < i+1 {
			if time.Now().After(deadline) {
				p.Resume()
				t.Fatalf("number %d waits for the answer of those before it", i)
			}
			<-time.After(100 * time.Microsecond)
		}
	}
	p.Resume()
	wg.Wait()
}
