package sessionlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// P1: after any error the lock is not held, and no lock stays held without a holder.
func TestTorture_ownershipAfterTimeoutsAndCancels(t *testing.T) {
	t.Parallel()
	const goroutines = 24
	each := pgtest.Rounds(4_000, 100_000) / goroutines
	managers := []*sessionlock.Manager{open(t), open(t, sessionlock.MaxWaiters(1)), open(t, sessionlock.MaxWaiters(0))}
	keys := []lockkey.Key{pgtest.Key(t, 0), pgtest.Key(t, 1), pgtest.PairKey(t)}
	var inside [3]atomic.Int32
	var granted, refused atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for range each {
				m, k := managers[g%3], rand.IntN(3)
				ctx, cancel := context.WithCancel(t.Context())
				var opts []sessionlock.AcquireOption
				mode := int32(1000)
				if rand.IntN(4) == 0 {
					opts = append(opts, sessionlock.Shared())
					mode = 1
				}
				switch rand.IntN(4) {
				case 0:
					stop := time.AfterFunc(rand.N(3*time.Millisecond), cancel)
					defer stop.Stop()
				case 1:
					opts = append(opts, sessionlock.Timeout(20*time.Millisecond))
				default:
					opts = append(opts, sessionlock.Timeout(time.Millisecond))
				}
				l, err := m.Acquire(ctx, keys[k], opts...)
				switch {
				case err == nil:
					if n := inside[k].Add(mode); n > 1000 || mode == 1000 && n != 1000 {
						t.Errorf("%d hold %v", n, keys[k])
					}
					if rand.IntN(3) == 0 {
						time.Sleep(rand.N(2 * time.Millisecond)) //nolint:forbidigo // the work under the lock
					}
					inside[k].Add(-mode)
					granted.Add(1)
					release(t, l)
				case errors.Is(err, sessionlock.ErrLockTimeout), errors.Is(err, context.Canceled):
					refused.Add(1)
				default:
					t.Error(err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	t.Logf("%d granted, %d refused", granted.Load(), refused.Load())
	if granted.Load() == 0 || refused.Load() == 0 {
		t.Error("this proves nothing")
	}
	pgtest.AssertFree(t, keys...)
}

// The control: a wait with pg_advisory_lock alone keeps locks after its timeout error.
func TestTorture_aPlainWaitKeepsLocksAfterItsTimeout(t *testing.T) {
	t.Parallel()
	holder, waiter := pgtest.Conn(t), pgtest.Conn(t)
	id, _ := lockkey.Of(t.Name()).Int64()
	exec := func(c *pgx.Conn, sql string, args ...any) {
		t.Helper()
		if _, err := c.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(waiter, "SET lock_timeout = '1ms'")
	for try := range 20_000 {
		exec(holder, "SELECT pg_advisory_lock($1)", id)
		failed := make(chan error)
		go func() {
			_, err := waiter.Exec(t.Context(), "SELECT pg_advisory_lock($1)", id)
			failed <- err
		}()
		<-time.After(rand.N(1500 * time.Microsecond))
		exec(holder, "SELECT pg_advisory_unlock($1)", id)
		err := <-failed
		var held bool
		if scan := waiter.QueryRow(t.Context(), "SELECT pg_advisory_unlock($1)", id).Scan(&held); scan != nil {
			t.Fatal(scan)
		}
		if err != nil && held {
			t.Logf("after %d tries: held in spite of %v", try, err)
			return
		}
	}
	t.Error("never held after an error: the test of the manager proves nothing")
}
