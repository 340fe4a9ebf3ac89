package lease

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// hands are the hands of a clock that a test moves.
type hands struct{ wall atomic.Int64 }

func (h *hands) now() holder.Instant {
	now := holder.Now()
	return holder.Instant{Mono: now.Mono, Wall: now.Wall + time.Duration(h.wall.Load())}
}

func clocked(t *testing.T, h *hands) (m, rival *Manager) {
	t.Helper()
	db := pgtest.SQLDB(t, pgtest.Schema())
	if err := Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	for i, clock := range []holder.Clock{h.now, holder.Now} {
		one, err := New(holder.WithClock(t.Context(), clock), db)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := one.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		if i == 0 {
			m = one
		} else {
			rival = one
		}
	}
	return m, rival
}

// The clock of a client may be wrong by hours: the clock of the database decides.
func TestClock_offByHours(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"fast": 5 * time.Hour, "slow": -5 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &hands{}
			h.wall.Store(int64(off))
			m, rival := clocked(t, h)
			k := lockkey.Of("report")
			l, err := m.Acquire(t.Context(), k, 3*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if left := time.Until(l.Until()); left <= 0 || left > 3*time.Second {
				t.Errorf("held for %s", left)
			}
			<-time.After(4 * time.Second) // past the first end of the lease
			if l.Err() != nil {
				t.Errorf("Err is %v", l.Err())
			}
			if _, err := rival.TryAcquire(t.Context(), k, time.Second); !errors.Is(err, ErrNotAcquired) {
				t.Errorf("the rival: %v", err)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			taken, err := rival.Acquire(t.Context(), k, 300*time.Millisecond, NoRenewal())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.TryAcquire(t.Context(), k, time.Second); err == nil && taken.Err() == nil {
				t.Error("taken from a holder")
			}
		})
	}
}

// If a clock is set, or stands still while the machine sleeps, a lease ends early and never late.
func TestClock_endsEarlyWhenItJumps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wall time.Duration
		wait time.Duration
		lost bool
	}{
		"the machine slept":                             {wall: time.Hour, lost: true},
		"the wall clock is set ahead":                   {wall: 61 * time.Second, lost: true},
		"the wall clock is set back":                    {wall: -time.Hour},
		"time went by, and the wall clock was set back": {wall: -time.Hour, wait: time.Second, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &hands{}
			m, rival := clocked(t, h)
			l, err := m.Acquire(t.Context(), lockkey.Of("report"), time.Minute-c.wait*59, NoRenewal())
			if err != nil {
				t.Fatal(err)
			}
			bound, stop := l.Bind(t.Context())
			defer stop()
			h.wall.Store(int64(c.wall))
			<-time.After(c.wait)
			if lost := errors.Is(l.Err(), ErrLost); lost != c.lost || (bound.Err() != nil) != c.lost {
				t.Errorf("Err is %v", l.Err())
			}
			select {
			case <-l.Lost():
				if !c.lost {
					t.Error("lost")
				}
			default:
				if c.lost {
					t.Error("not lost")
				}
			}
			if err := l.Release(t.Context()); errors.Is(err, ErrLost) != c.lost {
				t.Errorf("Release: %v", err)
			}
			// A lease that was lost by the clock is released anyway.
			next, err := rival.Acquire(t.Context(), lockkey.Of("report"), time.Minute, Timeout(20*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			if err := next.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// The background notices a jump of the clock by itself, at its next look.
func TestClock_backgroundSeesAJump(t *testing.T) {
	t.Parallel()
	h := &hands{}
	m, _ := clocked(t, h)
	l, err := m.Acquire(t.Context(), lockkey.Of("report"), 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	h.wall.Store(int64(time.Hour))
	select {
	case <-l.Lost():
	case <-time.After(30 * time.Second):
		t.Error("not lost")
	}
}
