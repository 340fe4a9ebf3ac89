package sessionlock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

func TestRelease_byManyAtOnceSucceedsOnce(t *testing.T) {
	t.Parallel()
	m := open(t)
	for range 50 {
		l := acquire(t, m, pgtest.Key(t))
		var released atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				switch err := l.Release(t.Context()); {
				case err == nil:
					released.Add(1)
				case !errors.Is(err, sessionlock.ErrReleased):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := released.Load(); n != 1 {
			t.Errorf("released %d times", n)
		}
	}
}

// The ctx of Release bounds the confirmation, not the release.
func TestRelease_underAContextThatEnded(t *testing.T) {
	t.Parallel()
	m := open(t)
	k := pgtest.Key(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 {
		l := acquire(t, m, k)
		if err := l.Release(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if !errors.Is(l.Err(), sessionlock.ErrReleased) {
			t.Errorf("Err is %v", l.Err())
		}
	}
	release(t, acquire(t, m, k))
	if _, err := m.Acquire(ctx, k); !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire says %v", err)
	}
	if _, err := m.AcquireAll(ctx, k); !errors.Is(err, context.Canceled) {
		t.Errorf("AcquireAll says %v", err)
	}
}

// P23: a bigint and a pair with the same bits are two locks.
func TestAcquire_spacesAreApart(t *testing.T) {
	t.Parallel()
	m := open(t)
	pair := pgtest.PairKey(t)
	hi, lo, _ := pair.Pair()
	number := lockkey.Int64(int64(hi)<<32 | int64(uint32(lo)))
	locks, err := m.AcquireAll(t.Context(), pair, number, pair)
	if err != nil || len(locks) != 2 {
		t.Fatalf("%v, %v", locks, err)
	}
	if err := locks.Release(t.Context()); err != nil {
		t.Error(err)
	}
	pgtest.AssertFree(t, number)
	if locks, err := m.AcquireAll(t.Context(), pair, lockkey.Of()); !errors.Is(err, lockkey.ErrInvalid) || locks != nil {
		t.Errorf("with an invalid key: %v, %v", locks, err)
	}
}

// A try gets an answer of its own, not the answer to an earlier try.
func TestTryAcquire_doesNotShareAnEarlierAnswer(t *testing.T) {
	t.Parallel()
	holder := open(t)
	p, dsn := pgtest.Tap(t, pgtest.DSN(t))
	m := openAt(t, dsn)
	k := pgtest.Key(t)
	l := acquire(t, holder, k)
	var once sync.Once
	p.OnQuery(func(string) wiretap.Action {
		action := wiretap.Pass
		once.Do(func() { action = wiretap.HoldAnswer })
		return action
	})
	answers := make(chan error, 2)
	try := func() {
		l, err := m.TryAcquire(t.Context(), k)
		if err == nil {
			release(t, l)
		}
		answers <- err
	}
	go try()
	if err := p.AwaitHeld(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-time.After(20 * time.Millisecond) // the server has answered, and the answer is held back
	release(t, l)
	go try()
	for sessionlock.Arrivals(m) < 2 {
		<-time.After(100 * time.Microsecond)
	}
	p.Resume()
	refused := 0
	for range 2 {
		switch err := <-answers; {
		case errors.Is(err, sessionlock.ErrNotAcquired):
			refused++
		case err != nil:
			t.Error(err)
		}
	}
	if refused > 1 {
		t.Error("the second try was refused a lock that was free when it was made")
	}
}

// All or none also holds if a lock is lost on the way.
func TestAcquireAll_takesAnewWhatWasLost(t *testing.T) {
	t.Parallel()
	holder, m := open(t), open(t)
	keys := []lockkey.Key{pgtest.Key(t, 0), pgtest.Key(t, 1), pgtest.Key(t, 2)}
	blocked := keys[0]
	for _, k := range keys {
		if lockkey.Compare(k, blocked) > 0 {
			blocked = k // the last in order, so the others are held while it is awaited
		}
	}
	blocker := acquire(t, holder, blocked)
	got := acquiringAll(t, m, keys)
	pgtest.WaitBlocked(t, blocked, 1)
	for _, k := range keys {
		if k != blocked {
			pid := pgtest.Locks(t, k)[0].PID
			pgtest.Kill(t, pid)
			for sessionlock.Alive(m, pid) {
				<-time.After(100 * time.Microsecond)
			}
			break
		}
	}
	release(t, blocker)
	locks := <-got
	for _, l := range locks {
		if err := l.Err(); err != nil {
			t.Errorf("one of all: %v", err)
		}
	}
	if err := locks.Release(t.Context()); err != nil || len(locks) != len(keys) {
		t.Errorf("%d locks: %v", len(locks), err)
	}
}

// The context of a former holder does not prevent a new acquisition.
func TestAcquire_underTheContextOfALockThatEnded(t *testing.T) {
	t.Parallel()
	m := open(t)
	k := pgtest.Key(t)
	l := acquire(t, m, k)
	bound, stop := l.Bind(t.Context())
	defer stop()
	release(t, l)
	if _, err := m.Acquire(bound, k); !errors.Is(err, context.Canceled) || !errors.Is(err, sessionlock.ErrReleased) {
		t.Errorf("under the ended context: %v", err)
	}
	release(t, func() *sessionlock.Lock {
		l, err := m.Acquire(context.WithoutCancel(bound), k, sessionlock.Timeout(30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}())
}

// Close waits a moment for code that does not return, but not for ever.
func TestClose_doesNotWaitForOthersCode(t *testing.T) {
	t.Parallel()
	var dials atomic.Int32
	entered, leave := make(chan struct{}), make(chan struct{})
	m, err := sessionlock.Open(t.Context(), pgtest.DSN(t), sessionlock.BeforeConnect(func(context.Context, *pgx.ConnConfig) error {
		if dials.Add(1) == 3 { // Open makes two
			close(entered)
			<-leave
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	l := acquire(t, m, pgtest.Key(t))
	pgtest.Kill(t, l.PID())
	pgtest.Await(t, "BeforeConnect", entered)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for range 2 {
		began := time.Now()
		if err := m.Close(ctx); err == nil || time.Since(began) > 10*time.Second {
			t.Errorf("Close says %v after %s", err, time.Since(began))
		}
	}
	close(leave)
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestClose_whileTheServerIsDown(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	m := openAt(t, server.DSN("postgres"))
	lostBy(t, m, lockkey.Of("a"), server.Crash)
	waiting := make(chan error)
	go func() {
		_, err := m.Acquire(t.Context(), lockkey.Of("a"))
		waiting <- err
	}()
	for sessionlock.Arrivals(m) == 0 {
		<-time.After(100 * time.Microsecond)
	}
	began := time.Now()
	if err := m.Close(t.Context()); err != nil || time.Since(began) > 5*time.Second {
		t.Errorf("Close says %v after %s", err, time.Since(began))
	}
	if err := <-waiting; !errors.Is(err, sessionlock.ErrClosed) {
		t.Errorf("who waits is told %v", err)
	}
}

// Goroutines that acquire while the manager is closed get the lock or ErrClosed, and no lock remains.
func TestClose_amongAcquires(t *testing.T) {
	t.Parallel()
	k, other := pgtest.Key(t), pgtest.PairKey(t)
	for range pgtest.Rounds(30, 300) {
		m, err := sessionlock.Open(t.Context(), pgtest.DSN(t))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for {
					key := []lockkey.Key{k, other}[i%2]
					l, err := m.Acquire(t.Context(), key)
					if err == nil {
						err = l.Release(t.Context())
					}
					if errors.Is(err, sessionlock.ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		<-time.After(time.Millisecond)
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wg.Wait()
	}
	pgtest.AssertFree(t, k, other)
}
