// Package lease holds locks with a time limit in a table of the database: for holders that
// keep no connection, such as serverless functions and everything behind a pooler in
// transaction mode, and for locks that have to survive the failure of a server.
//
//	m, err := lease.New(ctx, db, lease.Owner("billing-7"))
//	defer m.Close(context.WithoutCancel(ctx))
//	err = m.Do(ctx, lockkey.Of("billing", "nightly"), 30*time.Second, func(ctx context.Context) error {
//		// ctx ends with the cause ErrLost when the lease is lost
//		return db.WithContext(ctx).Save(&report).Error // guarded by the token ctx carries
//	})
//
// A lease is a row: who holds the key, and until when. To take it, to renew it and to give it back is one statement each,
// on whichever connection of the pool is free. Any driver of database/sql will do, and any pooler. (Behind a pooler in
// transaction mode the driver must keep no prepared statements: with pgx, default_query_exec_mode=exec.)
//
// # What holds
//
//   - At most one holder believes in a lease at a time. The clock of the database decides, and nobody else's: the holder
//     counts from the sending of the statement that took or renewed the lease, and stops a fiftieth of its length early.
//     The clocks may be hours apart, as long as they run equally fast to within two percent.
//   - A lease is renewed after a third of its length, in the background. A lost one is known as lost when it runs out, at
//     the latest: [Lease.Lost], the contexts of [Manager.Do] and [Lease.Bind], and [Lease.Err] say so. It stays lost.
//   - A process that is stopped cannot notice that. So every acquisition has a fencing token ([Lease.Token], and in those
//     contexts), and a write that is guarded by it is refused once a later one was issued: see package fence.
//   - After an error of Acquire the caller does not hold the lease. What the server may have granted is given back.
//   - A restart, a crash or a failover takes no lease with it. With asynchronous replication the last leases may be missing
//     on the promoted standby: two can believe in one for the rest of its length, and the guard refuses the first.
//   - Who waits asks again, after 10 ms at first and every 250 ms at last; with [Listen] a release wakes it.
//
// # What is not guaranteed
//
//   - The clock of the database is believed. When it is set ahead, or that of a promoted standby is ahead, leases run out
//     earlier than their holders believe by as much, and only fencing tells. A clock that is slewed (chrony, NTP) cures that.
//   - What a holder does outside the database is guarded by nobody's token, unless it is given the token and looks.
//   - There is no queue between processes and no detection of deadlocks: take several leases in one order, or with [Timeout].
//   - With [ShedLock], Java issues no tokens: a Go holder that a Java process superseded is not refused by the guard.
//   - A pool whose connections are all busy under leases cannot renew them: leave one.
//   - A Manager that is not closed keeps its goroutines.
//
// The table keeps one row of about 100 bytes for every key that was ever leased, and that of the tokens as well. Rows whose
// expires_at has passed may be deleted from the first one, never from the second.
//
// The package is meant to stay stable for v1. How it works, with the states of a lease, is in docs/internals/lease.md.
//
// # Stability
//
// The names and the behaviour that this package documents stay as they are for v1.
package lease
