package sessionlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// example returns a manager of session locks. A program gives Open the DSN of its database.
func example() (ctx context.Context, locks *sessionlock.Manager, end func()) {
	t := pgtest.NewExample()
	return t.Context(), open(t, sessionlock.Owner("billing-7")), t.End
}

// Do runs work that takes longer than a transaction should.
func ExampleManager_Do() {
	ctx, locks, end := example()
	defer end()
	err := locks.Do(ctx, lockkey.Of("example", "nightly"), func(ctx context.Context) error {
		fmt.Println("working")
		return ctx.Err() // ctx ends when the lock is lost
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: working
}

// If another process does the work already, that is enough.
func ExampleTry() {
	ctx, locks, end := example()
	defer end()
	cache := lockkey.Of("example", "cache")
	if _, err := locks.Acquire(ctx, cache); err != nil { // as another process
		fmt.Println(err)
		return
	}

	err := locks.Do(ctx, cache, func(context.Context) error {
		fmt.Println("working")
		return nil
	}, sessionlock.Try())
	if errors.Is(err, sessionlock.ErrNotAcquired) {
		fmt.Println("another process is working")
	}
	// Output: another process is working
}

// A lock that is acquired by hand must be released by hand. If its connection breaks, the lock is lost, and Lost is closed.
func ExampleManager_Acquire() {
	ctx, locks, end := example()
	defer end()
	lock, err := locks.Acquire(ctx, lockkey.Of("example", "import"), sessionlock.Timeout(5*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}

	select {
	case <-lock.Lost():
		fmt.Println("lost:", lock.Err())
	default:
		fmt.Println("working under", lock.Key())
	}
	if err := lock.Release(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: working under example/import
}

// Readers share a lock, and a writer waits for all of them.
func ExampleShared() {
	ctx, locks, end := example()
	defer end()
	cache := lockkey.Of("example", "shared")
	for range 2 {
		if _, err := locks.Acquire(ctx, cache, sessionlock.Shared()); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("reading")
	}

	_, err := locks.TryAcquire(ctx, cache)
	fmt.Println("the writer waits:", errors.Is(err, sessionlock.ErrNotAcquired))
	// Output:
	// reading
	// reading
	// the writer waits: true
}

// AcquireAll acquires all locks or none, in the same order everywhere.
func ExampleManager_AcquireAll() {
	ctx, locks, end := example()
	defer end()
	both, err := locks.AcquireAll(ctx, lockkey.Of("example", "warehouse"), lockkey.Of("example", "till"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("locks:", len(both))
	if err := both.Release(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: locks: 2
}

// While a fleet renames a lock, each process takes both locks.
func ExampleManager_Do_renamed() {
	ctx, locks, end := example()
	defer end()
	key := lockkey.Renamed(lockkey.Of("example", "report"), lockkey.Int64(-771))
	err := locks.Do(ctx, key, func(context.Context) error {
		fmt.Println("working under", key)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: working under example/report, formerly int64(-771)
}

// Bind returns a context that ends when the lock does.
func ExampleLock_Bind() {
	ctx, locks, end := example()
	defer end()
	lock, err := locks.Acquire(ctx, lockkey.Of("example", "bound"))
	if err != nil {
		fmt.Println(err)
		return
	}
	bound, stop := lock.Bind(ctx)
	defer stop()
	if err := lock.Release(ctx); err != nil {
		fmt.Println(err)
		return
	}
	<-bound.Done()
	fmt.Println("released:", errors.Is(context.Cause(bound), sessionlock.ErrReleased))
	// Output: released: true
}
