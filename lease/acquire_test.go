package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

func TestTryAcquire_excludesAndSaysWho(t *testing.T) {
	t.Parallel()
	db := tables(t)
	a, b := open(t, db, lease.Owner("billing-7")), open(t, db)
	for _, k := range []lockkey.Key{lockkey.Of("report", 1), lockkey.Int64(-7), lockkey.Pair(-1, 2)} {
		l := acquire(t, a, k, time.Minute)
		_, err := b.TryAcquire(t.Context(), k, time.Minute)
		if !errors.Is(err, lease.ErrNotAcquired) || !errors.Is(err, advisory.ErrNotAcquired) {
			t.Fatalf("%s: %v", k, err)
		}
		if text := err.Error(); !strings.Contains(text, k.String()) || !strings.Contains(text, `"billing-7" holds it for 59.`) {
			t.Errorf("%s", text)
		}
		if _, err := a.TryAcquire(t.Context(), k, time.Minute); !errors.Is(err, lease.ErrNotAcquired) {
			t.Errorf("%s: the same manager: %v", k, err)
		}
		release(t, l)
		next := tryAcquire(t, b, k)
		if next.Token().Number != l.Token().Number+1 || !next.Token().SameKey(l.Token()) || l.Token().Number>>40 != 1 {
			t.Errorf("%s: after %v came %v", k, l.Token(), next.Token())
		}
		release(t, next)
	}
}

// W4: the next caller gets the lease at the release, not a lease length later.
func TestAcquire_waitsForTheRelease(t *testing.T) {
	t.Parallel()
	db := tables(t)
	for name, managers := range map[string][2]*lease.Manager{
		"of another manager": {open(t, db), open(t, db)},
		"of the same":        func(m *lease.Manager) [2]*lease.Manager { return [2]*lease.Manager{m, m} }(open(t, db)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := lockkey.Of("report", name)
			l := acquire(t, managers[0], k, 10*time.Minute)
			got := acquiring(t, managers[1], k, time.Minute)
			stillWaits(t, got, 100*time.Millisecond, "two hold it")
			release(t, l)
			next := <-got
			if next == nil {
				return
			}
			if next.Token().Number <= l.Token().Number {
				t.Errorf("after %v came %v", l.Token(), next.Token())
			}
			release(t, next)
		})
	}
}

func TestAcquire_takesWhatRanOut(t *testing.T) {
	t.Parallel()
	a, b := rivals(t)
	k := lockkey.Of("report")
	l := acquire(t, a, k, 200*time.Millisecond, lease.NoRenewal())
	next := acquire(t, b, k, time.Minute)
	if err := l.Err(); !errors.Is(err, lease.ErrLost) || !strings.Contains(err.Error(), "ran out") {
		t.Errorf("the first one's Err is %v", err)
	}
	pgtest.Await(t, "Lost", l.Lost())
	if err := l.Release(t.Context()); !errors.Is(err, lease.ErrLost) {
		t.Errorf("Release of what ran out: %v", err)
	}
	if err := next.Err(); err != nil {
		t.Errorf("the second one's Err is %v", err)
	}
	release(t, next)
}

func TestAcquire_endsWithItsTime(t *testing.T) {
	t.Parallel()
	m := open(t, tables(t))
	k := lockkey.Of("report")
	l := acquire(t, m, k, time.Minute)
	_, err := m.Acquire(t.Context(), k, time.Minute, lease.Timeout(50*time.Millisecond))
	if !errors.Is(err, lease.ErrLockTimeout) || !strings.Contains(err.Error(), "50ms") {
		t.Errorf("Timeout: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := m.Acquire(ctx, k, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a ctx that ends: %v", err)
	}
	if _, err := m.Acquire(ctx, k, time.Minute); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "not asked for") {
		t.Errorf("a ctx that has ended: %v", err)
	}
	release(t, l)
	release(t, acquire(t, m, k, time.Minute))
}

// Waiters of one process queue, and at most one of them asks the database.
func TestAcquire_firstComeFirstServedInAProcess(t *testing.T) {
	t.Parallel()
	m := open(t, tables(t))
	k := lockkey.Of("report")
	l := acquire(t, m, k, time.Minute)
	const n = 20
	var order []int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range n {
		started := make(chan struct{})
		wg.Go(func() {
			ctx := &signalling{Context: t.Context(), asked: started}
			next, err := m.Acquire(ctx, k, time.Minute)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			release(t, next)
		})
		pgtest.Await(t, "the waiter stands in line", started)
	}
	release(t, l)
	wg.Wait()
	for i := range order {
		if order[i] != i {
			t.Fatalf("they were served as %v", order)
		}
	}
}

// signalling signals when somebody waits for its end, which Acquire does in the queue.
type signalling struct {
	context.Context
	once  sync.Once
	asked chan struct{}
}

func (s *signalling) Done() <-chan struct{} {
	s.once.Do(func() { close(s.asked) })
	return s.Context.Done()
}

func TestAcquire_manyAtOnceNeverTwo(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	managers := make([]*lease.Manager, 3)
	for i := range managers {
		db := tables(t, pgtest.Through(dsn), pgtest.MaxConns(4))
		managers[i] = open(t, db)
	}
	k := lockkey.Of("report")
	var mu sync.Mutex
	holders, last := 0, int64(0)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			for range 8 {
				l, err := managers[i%3].Acquire(t.Context(), k, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				holders++
				if holders != 1 || l.Token().Number <= last {
					t.Errorf("%d holders, token %d after %d", holders, l.Token().Number, last)
				}
				last = l.Token().Number
				mu.Unlock()
				mu.Lock()
				holders--
				mu.Unlock()
				release(t, l)
			}
		})
	}
	wg.Wait()
}

// Leases work with every isolation level that a pool may have set for its sessions.
func TestAcquire_atEveryIsolationLevel(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			db := tables(t, pgtest.Through(dsn), pgtest.Param("default_transaction_isolation", level))
			a, b := open(t, db), open(t, db)
			var wg sync.WaitGroup
			for i := range 8 {
				m := []*lease.Manager{a, b}[i%2]
				wg.Go(func() {
					for n := range 5 {
						l, err := m.Acquire(t.Context(), lockkey.Of(level, n%2), 5*time.Second)
						if err != nil {
							t.Error(err)
							return
						}
						if err := l.Renew(t.Context()); err != nil {
							t.Error(err)
						}
						release(t, l)
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestAcquire_byEveryProtocol(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			db := tables(t, pgtest.Param("default_query_exec_mode", mode))
			m := open(t, db)
			k := lockkey.Of(`it's "quoted" \ {,}`, mode)
			l := acquire(t, m, k, time.Minute, lease.Data([]byte{0, 1, 255, '\'', '\\'}))
			if err := l.Renew(t.Context()); err != nil {
				t.Error(err)
			}
			h, held, err := m.Holder(t.Context(), k)
			if err != nil || !held || string(h.Data) != "\x00\x01\xff'\\" {
				t.Errorf("the holder is %+v, %v, %v", h, held, err)
			}
			release(t, l)
		})
	}
}

func TestAcquire_reentrancyIsRefused(t *testing.T) {
	t.Parallel()
	m := open(t, tables(t))
	k := lockkey.Of("report")
	err := m.Do(t.Context(), k, time.Minute, func(ctx context.Context) error {
		if _, err := m.Acquire(ctx, k.Named("another name"), time.Minute); !errors.Is(err, lease.ErrReentrant) {
			return fmt.Errorf("Acquire: %w", err)
		}
		if _, err := m.TryAcquire(ctx, k, time.Minute); !errors.Is(err, lease.ErrReentrant) {
			return fmt.Errorf("TryAcquire: %w", err)
		}
		return m.Do(ctx, lockkey.Of("other"), time.Minute, func(ctx context.Context) error {
			if err := m.Do(ctx, k, time.Minute, idle); !errors.Is(err, lease.ErrReentrant) {
				return fmt.Errorf("two levels down: %w", err)
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}
