package sessionlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// rounds is short, or long in the torture mode.
func rounds(short, long int) int {
	if os.Getenv("GORMLOCK_TORTURE") != "" {
		return long
	}
	return short
}

// P1: after any error the lock is not held, and nothing stays held that nobody has.
func TestTorture_ownershipAfterTimeoutsAndCancels(t *testing.T) {
	t.Parallel()
	const goroutines = 24
	each := rounds(4_000, 100_000) / goroutines
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
