// Package lease holds locks with a time limit in a table of the database: for holders
// without a connection of their own, behind poolers in transaction mode, and for locks that
// have to survive the failure of a server.
//
//	m, err := lease.New(ctx, db, lease.Owner("billing-7"))
//	defer m.Close(context.WithoutCancel(ctx))
//	err = m.Do(ctx, lockkey.Of("billing", "nightly"), 30*time.Second, func(ctx context.Context) error {
//		// ctx ends with the cause ErrLost when the lease is lost
//	})
package lease
