package lease_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/lockkey"
)

// example starts PostgreSQL with a manager of leases. A program has its own *sql.DB, and calls lease.Migrate and lease.New.
func example() (ctx context.Context, leases *lease.Manager, end func()) {
	t := pgtest.NewExample()
	return t.Context(), open(t, tables(t), lease.Owner("billing-7")), t.End
}

// Do runs work in one process at a time.
func ExampleManager_Do() {
	ctx, leases, end := example()
	defer end()
	err := leases.Do(ctx, lockkey.Of("report", 7), 30*time.Second, func(ctx context.Context) error {
		fmt.Println("working")
		return ctx.Err() // ctx ends when the lease is lost
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: working
}

// If another process does the work already, that is enough.
func ExampleTry() {
	ctx, leases, end := example()
	defer end()
	report := lockkey.Of("report", 7)
	if _, err := leases.Acquire(ctx, report, time.Minute); err != nil { // as another process
		fmt.Println(err)
		return
	}

	err := leases.Do(ctx, report, time.Minute, func(context.Context) error {
		fmt.Println("working")
		return nil
	}, lease.Try())
	if errors.Is(err, lease.ErrNotAcquired) {
		fmt.Println("another process is working")
	}
	// Output: another process is working
}

// A lease that is acquired by hand must be released by hand. Its token tells a later holder from an earlier one.
func ExampleManager_Acquire() {
	ctx, leases, end := example()
	defer end()
	report := lockkey.Of("report", 7)
	first, err := leases.Acquire(ctx, report, time.Minute, lease.Timeout(5*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := first.Release(ctx); err != nil {
		fmt.Println(err)
		return
	}

	second, err := leases.TryAcquire(ctx, report, time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("later:", second.Token().Number > first.Token().Number)
	// Output: later: true
}

// Holder says who holds a lease, in any process.
func ExampleManager_Holder() {
	ctx, leases, end := example()
	defer end()
	report := lockkey.Of("report", 7)
	if _, err := leases.Acquire(ctx, report, time.Minute); err != nil {
		fmt.Println(err)
		return
	}

	holder, held, err := leases.Holder(ctx, report)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(held, holder.Owner)
	// Output: true billing-7
}

// Bind returns a context that ends with the lease, and carries its token to the database.
func ExampleLease_Bind() {
	ctx, leases, end := example()
	defer end()
	l, err := leases.Acquire(ctx, lockkey.Of("report", 7), time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}

	bound, stop := l.Bind(ctx)
	defer stop()
	if err := l.Release(ctx); err != nil {
		fmt.Println(err)
		return
	}
	<-bound.Done()
	fmt.Println(context.Cause(bound))
	// Output: gormlock: lease report/7: already released
}

// One process leads until its function returns, and then the next one.
func ExampleManager_Lead() {
	ctx, leases, end := example()
	defer end()
	importer := lockkey.Of("importer")
	err := leases.Lead(ctx, importer, 15*time.Second, func(context.Context) error {
		fmt.Println("leading:", leases.Leading(importer))
		return nil // a leader that goes on must watch ctx, which ends when it no longer leads
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("leading:", leases.Leading(importer))
	// Output:
	// leading: true
	// leading: false
}

// All processes run the schedule, and one of them runs each tick, once. A tick that fails is tried again.
func ExampleManager_Every() {
	ctx, leases, end := example()
	defer end()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var ticks []time.Time
	err := leases.Every(ctx, lockkey.Of("report", "nightly"), lease.Interval(50*time.Millisecond), func(_ context.Context, tick time.Time) error {
		if ticks = append(ticks, tick); len(ticks) == 3 {
			stop()
		}
		return nil
	}, lease.Missed(lease.RunAll), lease.Tries(5))
	if !errors.Is(err, context.Canceled) {
		fmt.Println(err)
		return
	}
	fmt.Println(ticks[1].Sub(ticks[0]), ticks[2].Sub(ticks[1]))
	// Output: 50ms 50ms
}

// Daily ticks once on every date, even when the clocks change: in Berlin the night of March 29, 2026 has no half past two.
func ExampleDaily() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	nightly := lease.Daily(2, 30, berlin)
	tick := time.Date(2026, time.March, 27, 12, 0, 0, 0, time.UTC)
	for range 3 {
		tick = nightly.Next(tick)
		fmt.Println(tick.In(berlin).Format("January 2, 15:04 MST"))
	}
	// Output:
	// March 28, 02:30 CET
	// March 29, 03:00 CEST
	// March 30, 02:30 CEST
}

// At most two callers hold the key at a time, each with a number.
func ExampleSlots() {
	ctx, leases, end := example()
	defer end()
	api := lockkey.Of("payment-api")
	for range 3 {
		l, err := leases.TryAcquire(ctx, api, time.Minute, lease.Slots(2))
		if errors.Is(err, lease.ErrNotAcquired) {
			fmt.Println("none is free")
			return
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("slot", l.Slot())
	}
	// Output:
	// slot 0
	// slot 1
	// none is free
}

// A scheduler asks IsLeader before each run: gocron.WithDistributedElector takes a Candidate as it is.
func ExampleElector() {
	ctx, leases, end := example()
	defer end()
	elector := lease.Elector(leases, lockkey.Of("scheduler"), 15*time.Second)
	if err := elector.IsLeader(ctx); err != nil {
		fmt.Println(err) // another process leads
		return
	}
	fmt.Println("leading")
	if err := elector.Resign(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("resigned:", errors.Is(elector.IsLeader(ctx), lease.ErrReleased))
	// Output:
	// leading
	// resigned: true
}

// Without renewal in the background, each step of the work renews the lease: a worker that hangs loses it.
func ExampleLease_Renew() {
	ctx, leases, end := example()
	defer end()
	held, err := leases.Acquire(ctx, lockkey.Of("import", 7), time.Minute, lease.NoRenewal())
	if err != nil {
		fmt.Println(err)
		return
	}
	for step := range 2 {
		if err := held.Renew(ctx); err != nil { // ErrLost: the lease ran out
			fmt.Println(err)
			return
		}
		fmt.Println("step", step)
	}
	if err := held.Release(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// step 0
	// step 1
}
