package sessionlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// example is a manager of session locks. Programs give Open the DSN of their database.
func example() (ctx context.Context, locks *sessionlock.Manager, end func()) {
	t := pgtest.NewExample()
	ctx = context.Background()
	locks, err := sessionlock.Open(ctx, pgtest.DSN(t), sessionlock.Owner("billing-7"))
	if err != nil {
		panic(err)
	}
	return ctx, locks, func() {
		if err := locks.Close(ctx); err != nil {
			fmt.Println(err)
		}
		t.End()
	}
}

// Work that is longer than a transaction should be.
func ExampleManager_Do() {
	ctx, locks, end := example()
	defer end()
	err := locks.Do(ctx, lockkey.Of("example", "nightly"), func(ctx context.Context) error {
		fmt.Println("working")
		return ctx.Err() // ctx ends when the lock is lost
	})
	fmt.Println(err)
	// Output:
	// working
	// <nil>
}

// If another process is at it, that is enough.
func ExampleTry() {
	ctx, locks, end := example()
	defer end()
	cache := lockkey.Of("example", "cache")
	other, err := locks.Acquire(ctx, cache)
	fmt.Println(err)
	err = locks.Do(ctx, cache, func(context.Context) error {
		fmt.Println("working")
		return nil
	}, sessionlock.Try())
	fmt.Println(errors.Is(err, sessionlock.ErrNotAcquired))
	fmt.Println(other.Release(ctx))
	// Output:
	// <nil>
	// true
	// <nil>
}

// All of them or none, in an order that everybody keeps.
func ExampleManager_AcquireAll() {
	ctx, locks, end := example()
	defer end()
	both, err := locks.AcquireAll(ctx, lockkey.Of("example", "warehouse"), lockkey.Of("example", "till"))
	fmt.Println(len(both), err)
	fmt.Println(both.Release(ctx))
	// Output:
	// 2 <nil>
	// <nil>
}

// While a fleet changes the name of a lock, each process takes both.
func ExampleManager_Do_renamed() {
	ctx, locks, end := example()
	defer end()
	key := lockkey.Renamed(lockkey.Of("example", "report"), lockkey.Int64(-771))
	err := locks.Do(ctx, key, func(context.Context) error {
		fmt.Println("working under", key)
		return nil
	})
	fmt.Println(err)
	// Output:
	// working under example/report, formerly int64(-771)
	// <nil>
}
