package work_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/work"
)

// cuttable returns a db with a network that can be cut, and another one without.
func cuttable(t *testing.T) (proxy *wiretap.Proxy, db, beside *gorm.DB) {
	t.Helper()
	dsn := pgtest.SchemaDSN(t)
	beside = pgtest.Open(t, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))
	must(t, work.Migrate(beside, &Mail{}))
	proxy, through := pgtest.Tap(t, dsn)
	return proxy, pgtest.Open(t, pgtest.Through(through), pgtest.Plugin(gormlock.New())), beside
}

// If a worker cannot reach the server, the contexts of its handlers end with their leases. If a handler returns nil after that, its job is not
// completed.
func TestRun_tellsAHandlerThatIsCutOff(t *testing.T) {
	t.Parallel()
	proxy, db, beside := cuttable(t)
	mail := enqueue(t, beside, "x")[0]
	const lease = time.Second
	told := make(chan error, 2)
	var attempts atomic.Int32
	start(t, worker(t, db, func(ctx context.Context, _ *Mail) error {
		if attempts.Add(1) > 1 {
			return nil
		}
		proxy.Refuse()
		proxy.Cut()
		select {
		case <-ctx.Done():
		case <-time.After(bound):
		}
		told <- context.Cause(ctx)
		proxy.Admit()
		return nil
	}, work.Lease(lease), work.Backoff(func(int) time.Duration { return 0 })))
	if err := <-told; !errors.Is(err, work.ErrTakenOver) {
		t.Errorf("the cause is %v", err)
	}
	eventually(t, "the second attempt", func() bool { return reload(t, beside, mail.ID).State == "done" })
	if m := reload(t, beside, mail.ID); m.Attempts != 2 || m.LastError == "" {
		t.Errorf("%d attempts, %q", m.Attempts, m.LastError)
	}
}

// Jobs that a worker claimed in advance do not begin after their leases have ended: others may have done them.
func TestRun_beginsNothingAfterItsLease(t *testing.T) {
	t.Parallel()
	proxy, db, beside := cuttable(t)
	const n, lease = 200, time.Second
	must(t, beside.Exec("INSERT INTO mails (text) SELECT 'x' FROM generate_series(1, ?)", n).Error)
	cut, others := make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	done := map[int64]bool{}
	twice, begun := 0, 0
	var last int64
	end := start(t, worker(t, db, func(_ context.Context, m *Mail) error {
		mu.Lock()
		if begun++; done[m.ID] {
			twice++
		}
		if begun == 44 {
			last = m.ID
		}
		stop := last == m.ID
		mu.Unlock()
		<-time.After(time.Millisecond)
		if stop {
			proxy.Refuse()
			proxy.Cut()
			close(cut)
			<-others
		}
		return nil
	}, work.Workers(1), work.Lease(lease)))
	<-cut
	start(t, worker(t, beside, func(_ context.Context, m *Mail) error {
		mu.Lock()
		defer mu.Unlock()
		done[m.ID] = true
		return nil
	}, work.Lease(lease)))
	eventually(t, "the other worker has done the rest", func() bool { return states(t, beside)["done"] == n })
	close(others)
	<-time.After(300 * time.Millisecond) // it would wrongly begin them now
	proxy.Admit()
	must(t, end())
	mu.Lock()
	defer mu.Unlock()
	if twice > 0 {
		t.Errorf("%d jobs began that another worker had done", twice)
	}
}

// The machine sleeps: the wall clock shows it after waking. Then the contexts of handlers end, and no old job begins.
func TestRun_afterTheMachineSlept(t *testing.T) {
	t.Parallel()
	db := open(t)
	mail := enqueue(t, db, "x")[0]
	var slept atomic.Int64
	ctx, stop := context.WithCancel(holder.WithClock(context.Background(), func() holder.Instant {
		now := holder.Now()
		now.Wall += time.Duration(slept.Load())
		return now
	}))
	defer stop()
	cause := make(chan error, 1)
	var attempts atomic.Int32
	w := worker(t, db, func(ctx context.Context, _ *Mail) error {
		if attempts.Add(1) > 1 {
			return nil
		}
		slept.Store(int64(time.Hour))
		select {
		case <-ctx.Done():
		case <-time.After(bound):
		}
		cause <- context.Cause(ctx)
		return nil
	}, work.Lease(10*time.Second), work.Backoff(func(int) time.Duration { return 0 }))
	over := make(chan error, 1)
	go func() { over <- w.Run(ctx) }()
	if err := <-cause; !errors.Is(err, work.ErrTakenOver) {
		t.Errorf("the cause is %v", err)
	}
	eventually(t, "the second attempt", func() bool { return reload(t, db, mail.ID).State == "done" })
	stop()
	must(t, <-over)
}

// A handler whose transaction has completed its job goes on for longer than the lease: nobody can take the job over meanwhile.
func TestRun_keepsALockedJob(t *testing.T) {
	t.Parallel()
	db := open(t)
	mail := enqueue(t, db, "x")[0]
	const lease = 600 * time.Millisecond
	cause := make(chan error, 1)
	start(t, worker(t, db, func(ctx context.Context, m *Mail) error {
		return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			if err := work.Complete(tx, m); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
			case <-time.After(5 * lease):
			}
			cause <- context.Cause(ctx)
			return nil
		})
	}, work.Lease(lease)))
	if err := <-cause; err != nil {
		t.Errorf("the handler was told: %v", err)
	}
	eventually(t, "it is done", func() bool { return reload(t, db, mail.ID).State == "done" })
	if m := reload(t, db, mail.ID); m.Attempts != 1 {
		t.Errorf("%d attempts", m.Attempts)
	}
}
