package lease_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// Requests and releases of many goroutines at the same time share statements.
func TestBatcher_manyInOneStatement(t *testing.T) {
	t.Parallel()
	proxy, m, _ := tapped(t)
	const goroutines, each = 64, 20
	turn := func(i int) {
		l, err := m.TryAcquire(t.Context(), lockkey.Of("many", i), time.Minute)
		if err != nil {
			t.Error(err)
			return
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	crowd := func(n int) {
		var wg sync.WaitGroup
		for i := range goroutines {
			wg.Go(func() {
				for range n {
					turn(i)
				}
			})
		}
		wg.Wait()
	}
	crowd(1) // a key's first lease is taken alone
	proxy.Reset()
	crowd(each)
	statements := proxy.Statements()
	together := 0
	for _, sql := range statements {
		if strings.HasPrefix(sql, "WITH given") {
			together++
		}
	}
	if together == 0 || len(statements) >= 2*goroutines*each {
		t.Errorf("%d statements, %d of them for many, for %d leases", len(statements), together, goroutines*each)
	}
	t.Logf("%d statements, %d of them for many, for %d leases", len(statements), together, goroutines*each)
}

// Calls that share statements behave like single calls: one holder at a time, tokens that grow, and after an error nothing stays held.
func TestTorture_batches(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	const managers, goroutines = 2, 40
	keys := make([]lockkey.Key, 60)
	for i := range keys {
		keys[i] = lockkey.Of("batch", i)
	}
	var state [60]struct {
		sync.Mutex
		held bool
		last int64
	}
	var ms []*lease.Manager
	for range managers {
		ms = append(ms, open(t, tables(t, pgtest.Through(dsn), pgtest.MaxConns(6))))
	}
	var acquired, refused, ended atomic.Int64
	until := time.Now().Add(time.Duration(pgtest.Rounds(3, 60)) * time.Second)
	one := func(m *lease.Manager) {
		i := rand.IntN(len(keys))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if rand.IntN(4) == 0 {
			ctx, cancel = context.WithTimeout(ctx, rand.N(20*time.Millisecond))
			defer cancel()
		}
		l, err := m.TryAcquire(ctx, keys[i], time.Minute)
		switch {
		case errors.Is(err, lease.ErrNotAcquired):
			refused.Add(1)
			return
		case ctx.Err() != nil && err != nil:
			ended.Add(1)
			return
		case err != nil:
			t.Error(err)
			return
		}
		acquired.Add(1)
		s := &state[i]
		s.Lock()
		if s.held || l.Token().Number <= s.last {
			t.Errorf("%s: held %v, token %d after %d", keys[i], s.held, l.Token().Number, s.last)
		}
		s.held, s.last = true, l.Token().Number
		s.Unlock()
		pgtest.Pause(time.Millisecond)
		s.Lock()
		s.held = false
		s.Unlock()
		ctx, cancel = context.WithTimeout(t.Context(), bound)
		defer cancel()
		if rand.IntN(8) == 0 {
			ctx, cancel = context.WithTimeout(ctx, rand.N(5*time.Millisecond)+1)
			defer cancel()
		}
		if err := l.Release(ctx); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	for _, m := range ms {
		for range goroutines {
			wg.Go(func() {
				for time.Now().Before(until) {
					one(m)
				}
			})
		}
	}
	wg.Wait()
	for _, k := range keys { // callers that left hold nothing
		release(t, acquire(t, ms[0], k, time.Minute))
	}
	t.Logf("%d acquired, %d refused, %d left", acquired.Load(), refused.Load(), ended.Load())
}

// A locked row of a lease or a token holds up callers of its key and nobody else.
func TestBatcher_othersThanALockedRow(t *testing.T) {
	t.Parallel()
	dsn := pgtest.SchemaDSN(t)
	m := open(t, tables(t, pgtest.Through(dsn), pgtest.MaxConns(12)))
	all := append([]lockkey.Key{lockkey.Of("locked"), lockkey.Of("guarded")}, make([]lockkey.Key, 40)...)
	for i := range all[2:] {
		all[2+i] = lockkey.Of("free", i)
	}
	for _, k := range all {
		release(t, acquire(t, m, k, time.Minute))
	}
	tx, err := pgtest.Conn(t, pgtest.Through(dsn)).BeginTx(t.Context(), pgx.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for table, k := range map[string]lockkey.Key{"gormlock_lease": all[0], "gormlock_fence": all[1]} {
		id, _ := k.Int64()
		if _, err := tx.Exec(t.Context(), "SELECT 1 FROM "+table+" WHERE id = $1 FOR UPDATE", id); err != nil {
			t.Fatal(err)
		}
	}
	var held, free sync.WaitGroup
	for _, k := range all[:2] {
		held.Go(func() { release(t, acquire(t, m, k, time.Minute)) })
	}
	for _, k := range all[2:] {
		free.Go(func() {
			for range 20 {
				release(t, acquire(t, m, k, time.Minute))
			}
		})
	}
	free.Wait()
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
	held.Wait()
}
