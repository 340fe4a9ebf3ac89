package work_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/work"
)

// One statement claims jobs for all free workers, one stores all outcomes of a moment, and one renews all leases.
func TestDrain_needsHalfARoundTripAJob(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]work.Option{"plain": nil, "OnePer": {work.OnePer("account_id")}, "FairBy": {work.FairBy("account_id")}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, through := pgtest.Tap(t, pgtest.SchemaDSN(t))
			db := pgtest.Open(t, pgtest.Through(through), pgtest.Plugin(gormlock.New()))
			must(t, work.Migrate(db, &Mail{}, opts...))
			const n = 4000
			must(t, db.Exec(fmt.Sprintf("INSERT INTO mails (account_id, text) SELECT g %% 1000, 'x' FROM generate_series(1, %d) g", n)).Error)
			w := worker(t, db, func(context.Context, *Mail) error { return nil }, append(opts, work.Workers(16))...)
			proxy.Reset()
			if got := drain(t, w); got != n {
				t.Errorf("%d attempts", got)
			}
			if trips := proxy.RoundTrips(); trips > n/2 {
				t.Errorf("%d round trips for %d jobs", trips, n)
			} else {
				t.Logf("%.3f round trips a job", float64(trips)/n)
			}
		})
	}
}

// claims counts the claims that found jobs.
type claims struct{ atomic.Int32 }

func (c *claims) Observe(_ context.Context, e observe.Event) {
	if e.Kind == observe.Claimed {
		c.Add(1)
	}
}

// A job of another account than the one with the backlog begins within two claims after the worker was notified of its commit. A new list is made
// when that takes less than a fifth of the time, so each newcomer comes after a pause.
func TestFairBy_aNewcomerIsInTheSecondClaim(t *testing.T) {
	t.Parallel()
	db := open(t, work.FairBy("account_id"))
	must(t, db.Exec("INSERT INTO mails (account_id, text) SELECT 1, 'a' FROM generate_series(1, 100000)").Error)
	must(t, db.Exec("ANALYZE mails").Error) // as the server does within a minute
	var made claims
	var pause sync.RWMutex
	begun := make(chan int32, 100)
	w := worker(t, db, func(_ context.Context, m *Mail) error {
		pause.RLock()
		defer pause.RUnlock()
		if m.Text == "b" {
			begun <- made.Load()
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // the work
		return nil
	}, work.FairBy("account_id"), work.Workers(4), work.Observer(&made))
	start(t, w)
	eventually(t, "the backlog is worked on", func() bool { return made.Load() > 2 })
	const newcomers = 5
	within := 0
	var took []int32
	for range newcomers {
		pause.Lock()
		must(t, db.Transaction(func(tx *gorm.DB) error { return work.Enqueue(tx, of(2, "b")) }))
		time.Sleep(700 * time.Millisecond) //nolint:forbidigo // the pause, in which the worker is notified
		before := made.Load()
		pause.Unlock()
		select {
		case after := <-begun:
			took = append(took, after-before)
		case <-time.After(bound):
			t.Fatal("the newcomer's job has not begun")
		}
		if took[len(took)-1] <= 2 {
			within++
		}
	}
	t.Log("claims until the newcomer's job began:", took)
	if within*2 < newcomers {
		t.Errorf("claims until the newcomer's job began: %v, want 2 for most", took)
	}
}

// Enqueue in a transaction does what Create does, and notes where the job is. It is not parallel, because it counts allocations.
func TestEnqueue_allocatesHardlyMoreThanCreate(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	db := open(t)
	count := func(insert func(tx *gorm.DB) error) float64 {
		return testing.AllocsPerRun(50, func() {
			tx := db.Begin()
			must(t, insert(tx))
			must(t, tx.Rollback().Error) // so that nothing is announced
		})
	}
	create := count(func(tx *gorm.DB) error { return tx.Create(&Mail{Text: "x"}).Error })
	enqueue := count(func(tx *gorm.DB) error { return work.Enqueue(tx, &Mail{Text: "x"}) })
	t.Logf("%.0f allocations, of Create %.0f", enqueue, create)
	if enqueue > create+16 { // the transaction's journal, the hint, GORM's session
		t.Errorf("%.0f allocations, Create has %.0f", enqueue, create)
	}
}
