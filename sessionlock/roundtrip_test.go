package sessionlock_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

func TestRoundTrips_oneToTakeOneToGiveBack(t *testing.T) {
	t.Parallel()
	p, dsn := pgtest.Tap(t, migrate(t))
	m := openAt(t, dsn, sessionlock.Heartbeat(time.Minute))
	keys := []lockkey.Key{pgtest.Key(t, 0), pgtest.Key(t, 1), pgtest.PairKey(t)}
	release(t, acquire(t, m, keys[0], sessionlock.Fenced())) // the connection for tokens
	count := func(what string, want int, do func()) {
		t.Helper()
		p.Reset()
		do()
		if n := p.RoundTrips(); n != want {
			t.Errorf("%s: %d round trips, want %d: %q", what, n, want, p.Statements())
		}
	}
	var l *sessionlock.Lock
	count("acquire", 1, func() { l = acquire(t, m, keys[0]) })
	count("release", 1, func() { release(t, l) })
	count("fenced", 2, func() { l = acquire(t, m, keys[0], sessionlock.Fenced()) })
	count("refused in the process", 0, func() { _, _ = m.TryAcquire(t.Context(), keys[0]) })
	count("released", 1, func() { release(t, l) })
	var all sessionlock.Locks
	count("several", 1, func() {
		var err error
		if all, err = m.AcquireAll(t.Context(), keys...); err != nil {
			t.Fatal(err)
		}
	})
	count("several back", 1, func() {
		if err := all.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
	count("none", 0, func() {
		none, err := m.AcquireAll(t.Context())
		if err != nil || len(none) != 0 || none.Release(t.Context()) != nil {
			t.Errorf("%v, %v", none, err)
		}
	})
	l = acquire(t, m, keys[0])
	next := acquiring(t, m, keys[0])
	for sessionlock.Arrivals(m) == 0 {
		<-time.After(100 * time.Microsecond)
	}
	count("handed over in the process", 0, func() {
		release(t, l)
		l = <-next
	})
	release(t, l)
}

// Requests of many goroutines at the same time share a round trip.
func TestRoundTrips_manyShareOne(t *testing.T) {
	t.Parallel()
	p, dsn := pgtest.Tap(t, pgtest.DSN(t))
	m := openAt(t, dsn)
	const n = 500
	var wg sync.WaitGroup
	p.Reset()
	p.StallAnswers() // the first statement is on its way until all callers have come
	locks := make(sessionlock.Locks, n)
	for i := range n {
		wg.Go(func() {
			var err error
			if locks[i], err = m.Acquire(t.Context(), lockkey.Of(t.Name(), i)); err != nil {
				t.Error(err)
			}
		})
	}
	for sessionlock.Arrivals(m) < n {
		<-time.After(100 * time.Microsecond)
	}
	p.Resume()
	wg.Wait()
	if tries := count(p.Statements(), "pg_try_advisory_lock"); tries > 5 {
		t.Errorf("%d statements for %d locks", tries, n)
	}
	p.Reset()
	p.StallAnswers()
	for _, l := range locks {
		wg.Go(func() {
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	for held := n; held > 0; {
		<-time.After(100 * time.Microsecond)
		held = 0
		for _, l := range locks {
			if l.Err() == nil {
				held++
			}
		}
	}
	p.Resume()
	wg.Wait()
	if unlocks := count(p.Statements(), "pg_advisory_unlock"); unlocks > 5 {
		t.Errorf("%d statements to give %d locks back", unlocks, n)
	}
}

// One statement asks for all keys without a session to wait on.
func TestWaiters_pollInOneStatement(t *testing.T) {
	t.Parallel()
	holder := open(t)
	p, dsn := pgtest.Tap(t, pgtest.DSN(t))
	m := openAt(t, dsn, sessionlock.MaxWaiters(0))
	keys := make([]lockkey.Key, 40)
	for i := range keys {
		keys[i] = pgtest.Key(t, i)
	}
	held, err := holder.AcquireAll(t.Context(), keys...)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, k := range keys {
		wg.Go(func() {
			if err := m.Do(t.Context(), k, func(context.Context) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	for sessionlock.Arrivals(m) < len(keys) {
		<-time.After(100 * time.Microsecond)
	}
	<-time.After(200 * time.Millisecond) // all were asked for when they came
	p.Reset()
	began := time.Now()
	<-time.After(time.Second)
	polls, most := count(p.Statements(), "pg_try_advisory_lock"), int(time.Since(began)/(35*time.Millisecond))
	if polls == 0 || polls > most {
		t.Errorf("%d statements to ask for %d keys, at most %d should do", polls, len(keys), most)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

func count(statements []string, part string) int {
	n := 0
	for _, s := range statements {
		if strings.Contains(s, part) {
			n++
		}
	}
	return n
}
