package lease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// behind returns a manager whose statements go through a pooler, the line between the pooler and the server, and a manager that bypasses both.
func behind(t *testing.T, pooler, mode string) (m *lease.Manager, line *wiretap.Proxy, beside *lease.Manager) {
	t.Helper()
	dsn := pgtest.Database(t)
	direct := pgtest.SQLDB(t, pgtest.Through(dsn))
	if err := lease.Migrate(t.Context(), direct); err != nil {
		t.Fatal(err)
	}
	line, tapped := pgtest.Tap(t, dsn)
	db := pgtest.SQLDB(t, pgtest.Through(pgtest.Poolers[pooler](t, tapped)), pgtest.Param("default_query_exec_mode", mode))
	return open(t, db), line, open(t, direct)
}

// A pooler says with a code that it has lost its server. The lease may have been granted all the same, and is looked for and released.
func TestAcquire_unheardBehindAPooler(t *testing.T) {
	t.Parallel()
	for pooler := range pgtest.Poolers {
		for _, mode := range []string{"exec", "simple_protocol"} {
			for kind, asked := range map[string][]lease.AcquireOption{"alone": nil, "slots": {lease.Slots(1)}, "data": {lease.Data([]byte("x"))}} {
				t.Run(pooler+"/"+mode+"/"+kind, func(t *testing.T) {
					t.Parallel()
					m, line, beside := behind(t, pooler, mode)
					k := lockkey.Of("report")
					loseOneAnswer(line, `INSERT INTO "gormlock_lease"`)
					if _, err := m.TryAcquire(t.Context(), k, time.Hour, asked...); err == nil || errors.Is(err, lease.ErrNotAcquired) {
						t.Errorf("the answer is lost: %v", err)
					}
					release(t, acquire(t, beside, k, time.Hour, append(asked, lease.Timeout(20*time.Second))...)) // which would be held for an hour
				})
			}
		}
	}
}

// each is a schedule of ticks that come one after the other.
type each time.Duration

func (e each) Next(t time.Time) time.Time { return t.Truncate(time.Duration(e)).Add(time.Duration(e)) }

// While a pooler has no server, what waits goes on to wait.
func TestPooler_withoutItsServer(t *testing.T) {
	t.Parallel()
	for pooler := range pgtest.Poolers {
		for _, mode := range []string{"exec", "simple_protocol"} {
			t.Run(pooler+"/"+mode, func(t *testing.T) {
				t.Parallel()
				m, line, beside := behind(t, pooler, mode)
				first, second := acquire(t, beside, lockkey.Of("first"), time.Hour), acquire(t, beside, lockkey.Of("second"), time.Hour)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				var ticks, led, acquired atomic.Int64
				ends := make(chan error, 3)
				go func() {
					ends <- m.Every(ctx, lockkey.Of("every"), each(50*time.Millisecond), func(context.Context, time.Time) error { ticks.Add(1); return nil })
				}()
				go func() {
					ends <- m.Lead(ctx, lockkey.Of("first"), time.Second, func(ctx context.Context) error { led.Add(1); <-ctx.Done(); return ctx.Err() })
				}()
				go func() {
					l, err := m.Acquire(ctx, lockkey.Of("second"), time.Minute)
					if err == nil {
						acquired.Add(1)
						err = errors.Join(l.Release(ctx), context.Canceled)
					}
					ends <- err
				}()
				pgtest.Eventually(t, "a tick", func() bool { return ticks.Load() > 0 })
				line.Refuse()
				for range 5 {
					line.Cut()
					<-time.After(300 * time.Millisecond)
				}
				line.Admit()
				seen := ticks.Load()
				release(t, first)
				release(t, second)
				pgtest.Eventually(t, "all go on", func() bool { return ticks.Load() > seen+1 && led.Load() == 1 && acquired.Load() == 1 || len(ends) > 1 })
				stop()
				for range cap(ends) {
					if err := <-ends; !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				}
			})
		}
	}
}
