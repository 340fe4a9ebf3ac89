package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

func TestSlots_atMostSoMany(t *testing.T) {
	t.Parallel()
	db := tables(t)
	a, b := open(t, db, lease.Owner("billing-7")), open(t, db)
	for _, k := range []lockkey.Key{lockkey.Of("import"), lockkey.Int64(-7), lockkey.Pair(-1, 2)} {
		var held []*lease.Lease
		for i := range 3 {
			l := acquire(t, []*lease.Manager{a, b}[i%2], k, time.Minute, lease.Slots(3))
			if l.Slot() != i {
				t.Errorf("%s: slot %d is granted as number %d", k, l.Slot(), i)
			}
			for _, other := range held {
				if l.Token().SameKey(other.Token()) {
					t.Errorf("%s: tokens of two slots compare: %v and %v", k, l.Token(), other.Token())
				}
			}
			held = append(held, l)
		}
		_, err := b.TryAcquire(t.Context(), k, time.Minute, lease.Slots(3))
		if !errors.Is(err, lease.ErrNotAcquired) || !strings.Contains(err.Error(), `3 hold slots of it; the first that would run out is that of "billing-7"`) {
			t.Errorf("%s: a fourth: %v", k, err)
		}
		release(t, held[1])
		next := acquire(t, b, k, time.Minute, lease.Slots(3))
		if next.Slot() != 1 || !next.Token().SameKey(held[1].Token()) || next.Token().Number != held[1].Token().Number+1 {
			t.Errorf("%s: after %v of slot 1 came %v of slot %d", k, held[1].Token(), next.Token(), next.Slot())
		}
		for _, l := range []*lease.Lease{held[0], held[2], next} {
			if err := l.Renew(t.Context()); err != nil {
				t.Error(err)
			}
			release(t, l)
		}
	}
}

// Without Slots a caller holds the whole key: it excludes slots, and is excluded by each.
func TestSlots_excludeTheWholeKey(t *testing.T) {
	t.Parallel()
	a, b := rivals(t)
	k := lockkey.Of("import")
	whole := acquire(t, a, k, time.Minute)
	if _, err := b.TryAcquire(t.Context(), k, time.Minute, lease.Slots(5)); !errors.Is(err, lease.ErrNotAcquired) {
		t.Errorf("a slot beside the whole: %v", err)
	}
	release(t, whole)
	if whole.Slot() != 0 {
		t.Errorf("slot %d", whole.Slot())
	}
	one, two := acquire(t, a, k, time.Minute, lease.Slots(5)), acquire(t, b, k, time.Minute, lease.Slots(5), lease.Data([]byte("x")))
	for range 2 {
		if _, err := b.TryAcquire(t.Context(), k, time.Minute); !errors.Is(err, lease.ErrNotAcquired) || strings.Contains(err.Error(), "slots\" holds it for 1") {
			t.Errorf("the whole beside slots: %v", err)
		}
	}
	h, held, err := b.Holder(t.Context(), k)
	if err != nil || !held || h.Remains > time.Minute {
		t.Errorf("the holder is %+v, %v, %v", h, held, err)
	}
	release(t, one)
	if h, held, err = b.Holder(t.Context(), k); err != nil || !held || string(h.Data) != "x" {
		t.Errorf("the holder is %+v, %v, %v", h, held, err)
	}
	waiting := acquiring(t, a, k, time.Minute)
	stillWaits(t, waiting, 100*time.Millisecond, "held whole beside a slot")
	release(t, two)
	again := <-waiting
	if again.Token().Number != whole.Token().Number+1 {
		t.Errorf("after %v came %v", whole.Token(), again.Token())
	}
	if _, held, err = b.Holder(t.Context(), k); err != nil || !held {
		t.Errorf("held %v, %v", held, err)
	}
	release(t, again)
	if _, held, err = b.Holder(t.Context(), k); err != nil || held {
		t.Errorf("held %v, %v", held, err)
	}
	release(t, acquire(t, b, k, time.Minute, lease.Slots(1)))
	release(t, acquire(t, b, k, time.Minute))
}

// A caller with a larger n gets a slot at once. A caller with a smaller n waits until fewer hold slots, whichever slots they are.
func TestSlots_ofDifferentNumbers(t *testing.T) {
	t.Parallel()
	m := open(t, tables(t))
	k := lockkey.Of("import")
	var held []*lease.Lease
	for range 3 {
		held = append(held, acquire(t, m, k, time.Minute, lease.Slots(3)))
	}
	small := acquiring(t, m, k, time.Minute, lease.Slots(2))
	held = append(held, acquire(t, m, k, time.Minute, lease.Slots(5))) // overtakes the waiter
	if n := held[3].Slot(); n != 3 {
		t.Errorf("it has slot %d", n)
	}
	for i := range 2 {
		release(t, held[i])
		stillWaits(t, small, 300*time.Millisecond, fmt.Sprintf("one of two slots is granted beside %d", 3-i))
	}
	release(t, held[2])
	l := <-small
	if l.Slot() != 0 {
		t.Errorf("it has slot %d", l.Slot())
	}
	if _, err := m.TryAcquire(t.Context(), k, time.Minute, lease.Slots(2)); !errors.Is(err, lease.ErrNotAcquired) {
		t.Errorf("beside slots 0 and 3: %v", err)
	}
	release(t, l)
	release(t, held[3])
}

func TestSlots_raced(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	k := lockkey.Of("import")
	const n = 3
	var holders, whole atomic.Int32
	var most atomic.Int32
	var wg sync.WaitGroup
	for i := range 3 {
		level := []string{"read committed", "repeatable read", "serializable"}[i]
		m := open(t, tables(t, pgtest.Through(dsn), pgtest.MaxConns(4), pgtest.Param("default_transaction_isolation", level)))
		for j := range 4 {
			wg.Go(func() {
				for range 10 {
					opts := []lease.AcquireOption{lease.Slots(n)}
					if j == 0 {
						opts = nil
					}
					l, err := m.Acquire(t.Context(), k, time.Minute, opts...)
					if err != nil {
						t.Error(err)
						return
					}
					if opts == nil {
						if whole.Add(1) != 1 || holders.Load() != 0 {
							t.Errorf("whole beside %d", holders.Load())
						}
						whole.Add(-1)
					} else {
						now := holders.Add(1)
						if now > n || whole.Load() != 0 {
							t.Errorf("%d hold slots, %d the whole", now, whole.Load())
						}
						most.Store(max(most.Load(), now))
						pgtest.Pause(2 * time.Millisecond)
						holders.Add(-1)
					}
					release(t, l)
				}
			})
		}
	}
	wg.Wait()
	if most.Load() < 2 {
		t.Errorf("at most %d held slots at a time: the race proves nothing", most.Load())
	}
}

func TestSlots_runOutAndWakeWaiters(t *testing.T) {
	t.Parallel()
	db := tables(t)
	m, rival := open(t, db), open(t, db)
	k := lockkey.Of("import")
	dead := acquire(t, m, k, 300*time.Millisecond, lease.Slots(1), lease.NoRenewal())
	l := acquire(t, rival, k, time.Minute, lease.Slots(1))
	if !errors.Is(dead.Err(), lease.ErrLost) {
		t.Errorf("the one before: %v", dead.Err())
	}
	var superseded bool
	if err := db.QueryRowContext(t.Context(), "SELECT NOT ("+dead.Token().Guard(1)+")", dead.Token().Args()...).Scan(&superseded); err != nil || !superseded {
		t.Errorf("a write of the one before is refused: %v, %v", superseded, err)
	}
	err := m.Do(t.Context(), lockkey.Of("other"), time.Minute, func(ctx context.Context) error {
		inner, err := m.Acquire(ctx, lockkey.Of("other", "slots"), time.Minute, lease.Slots(2))
		if err != nil {
			return err
		}
		defer func() { _ = inner.Release(ctx) }()
		bound, stop := inner.Bind(ctx)
		defer stop()
		if n := len(fence.FromContext(bound)); n != 2 {
			return fmt.Errorf("it carries %d tokens", n)
		}
		_, err = m.Acquire(bound, lockkey.Of("other", "slots"), time.Minute, lease.Slots(2))
		if !errors.Is(err, lease.ErrReentrant) {
			return fmt.Errorf("a second slot of the same holder: %w", err)
		}
		return nil
	}, lease.Slots(1))
	if err != nil {
		t.Error(err)
	}
	release(t, l)
}

// A lost answer leaves no slot held.
func TestSlots_aLostAnswerLeavesNothing(t *testing.T) {
	t.Parallel()
	proxy, m, db := tapped(t)
	k := lockkey.Of("import")
	release(t, acquire(t, m, k, time.Minute, lease.Slots(2)))
	loseOneAnswer(proxy, "slots %")
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	if _, err := m.TryAcquire(ctx, k, time.Minute, lease.Slots(2)); err == nil {
		t.Fatal("it knows an answer that was lost")
	}
	rival := open(t, db)
	one, two := acquire(t, rival, k, time.Minute, lease.Slots(2)), acquire(t, rival, k, time.Minute, lease.Slots(2))
	release(t, one)
	release(t, two)
}

func TestSlots_refusals(t *testing.T) {
	t.Parallel()
	m := open(t, tables(t))
	_, _, shed := shedlock(t)
	for _, n := range []int{-1, 0, 2001} {
		if _, err := m.Acquire(t.Context(), lockkey.Of("k"), time.Minute, lease.Slots(n)); !errors.Is(err, lease.ErrOption) {
			t.Errorf("Slots(%d): %v", n, err)
		}
	}
	if _, err := shed.Acquire(t.Context(), lockkey.Of("k"), time.Minute, lease.Slots(2)); !errors.Is(err, lease.ErrOption) {
		t.Errorf("in ShedLock's table: %v", err)
	}
	if err := m.Lead(t.Context(), lockkey.Of("k"), time.Minute, idle, lease.Slots(2)); !errors.Is(err, lease.ErrOption) {
		t.Errorf("Lead: %v", err)
	}
	l := acquire(t, m, lockkey.Of("k"), time.Minute, lease.Slots(2000))
	release(t, l)
}

// loseOneAnswer cuts the connection before the answer to the next statement that contains text.
func loseOneAnswer(proxy *wiretap.Proxy, text string) { onFirst(proxy, text, wiretap.CutAnswer) }

// onFirst does something to the next statement that contains text, and only to that one.
func onFirst(proxy *wiretap.Proxy, text string, action wiretap.Action) {
	var met atomic.Bool
	proxy.OnQuery(func(sql string) wiretap.Action {
		if strings.Contains(sql, text) && met.CompareAndSwap(false, true) {
			return action
		}
		return wiretap.Pass
	})
}
