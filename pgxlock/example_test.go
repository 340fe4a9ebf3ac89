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

func ExampleTransaction() {
	t := pgtest.NewExample()
	defer t.End()
	ctx, pool := context.Background(), newPool(t, pgtest.DSN(t), 2)
	key := lockkey.Of("invoice", 42, "pgxlock")

	err := pgxlock.Transaction(ctx, pool, func(tx pgx.Tx) error {
		rival := pgxlock.Transaction(ctx, pool, func(pgx.Tx) error { return nil }, pgxlock.Locking(key, advisory.Try()))
		fmt.Println("the rival is refused:", errors.Is(rival, advisory.ErrNotAcquired))
		return nil
	}, pgxlock.Locking(key, advisory.Timeout(time.Second)), pgxlock.Attempts(20))
	fmt.Println(err)
	// Output:
	// the rival is refused: true
	// <nil>
}

func ExampleAcquire() {
	t := pgtest.NewExample()
	defer t.End()
	ctx, pool := context.Background(), newPool(t, pgtest.DSN(t), 2)
	from, to := lockkey.Of("account", 1, "pgxlock"), lockkey.Of("account", 2, "pgxlock")

	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		return pgxlock.Acquire(ctx, tx, []lockkey.Key{from, to}, advisory.Timeout(time.Second))
	})
	fmt.Println(err)
	// Output: <nil>
}
