package pgxlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/pgxlock"
)

// The transaction begins with its lock. A rival that does not want to wait is refused.
func ExampleTransaction() {
	t := pgtest.NewExample()
	defer t.End()
	ctx, pool := context.Background(), newPool(t, pgtest.DSN(t), 2)
	key := lockkey.Of("invoice", 42, "pgxlock")

	err := pgxlock.Transaction(ctx, pool, func(pgx.Tx) error {
		rival := pgxlock.Transaction(ctx, pool, func(pgx.Tx) error { return nil }, pgxlock.Locking(key, advisory.Try()))
		fmt.Println("the rival is refused:", errors.Is(rival, advisory.ErrNotAcquired))
		return nil
	}, pgxlock.Locking(key, advisory.Timeout(time.Second)), pgxlock.Attempts(20))
	if err != nil {
		fmt.Println(err)
	}
	// Output: the rival is refused: true
}

// Two locks in a transaction that is open already: both are taken in one round trip, or none.
func ExampleAcquire() {
	t := pgtest.NewExample()
	defer t.End()
	ctx, pool := context.Background(), newPool(t, pgtest.DSN(t), 2)
	from, to := lockkey.Of("account", 1, "pgxlock"), lockkey.Of("account", 2, "pgxlock")

	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := pgxlock.Acquire(ctx, tx, []lockkey.Key{from, to}, advisory.Timeout(time.Second)); err != nil {
			return err // ErrLockTimeout: somebody else holds one of them
		}
		fmt.Println("both are locked until the commit")
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: both are locked until the commit
}
