package advisory_test

import (
	"context"
	"errors"
	"fmt"

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
	fmt.Println(locker.SessionLock(ctx, conn))
	fmt.Println(locker.SessionUnlock(ctx, conn))
	fmt.Println(errors.Is(locker.SessionUnlock(ctx, conn), advisory.ErrNotHeld))
	// Output:
	// <nil>
	// <nil>
	// true
}
