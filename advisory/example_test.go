package advisory_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// What goose.WithSessionLocker takes: it locks on the connection that the tool brings.
func ExampleSessionLocker() {
	t := pgtest.NewExample()
	defer t.End()
	ctx, pool := context.Background(), pgtest.SQLDB(t)
	conn, err := pool.Conn(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	locker := advisory.SessionLocker(lockkey.Of("migrations", "example"))
	if err := locker.SessionLock(ctx, conn); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("migrating")
	if err := locker.SessionUnlock(ctx, conn); err != nil {
		fmt.Println(err)
		return
	}
	again := locker.SessionUnlock(ctx, conn)
	fmt.Println("not held any more:", errors.Is(again, advisory.ErrNotHeld))
	// Output:
	// migrating
	// not held any more: true
}

// For code that holds a *sql.Tx: the lock is freed by its commit or rollback.
func ExampleAcquire() {
	t := pgtest.NewExample()
	defer t.End()
	ctx, pool := context.Background(), pgtest.SQLDB(t)
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = tx.Rollback() }() // nothing to do after a commit

	keys := []lockkey.Key{lockkey.Of("example", "account", 1), lockkey.Of("example", "account", 2)}
	if err := advisory.Acquire(ctx, tx, keys, advisory.Timeout(time.Second)); err != nil {
		fmt.Println(err) // ErrLockTimeout: the transaction can go on without the locks
		return
	}
	fmt.Println("both are locked")
	if err := tx.Commit(); err != nil {
		fmt.Println(err)
	}
	// Output: both are locked
}
