// Package lease holds locks with a time limit, as rows of a table. Use it where holders keep no connection (serverless
// functions, everything behind a pooler in transaction mode), and where a lock must survive the failure of a server.
//
//	m, err := lease.New(ctx, db, lease.Owner("billing-7"))
//	defer m.Close(context.WithoutCancel(ctx))
//	err = m.Do(ctx, lockkey.Of("billing", "nightly"), 30*time.Second, func(ctx context.Context) error {
//		// ctx ends with the cause ErrLost when the lease is lost
//		return db.WithContext(ctx).Save(&report).Error // guarded by the token ctx carries
//	})
//
// A lease is a row: who holds the key, and until when. One statement acquires it, one renews it, one releases it, each
// on any free connection of the pool. Every driver of database/sql works, and every pooler. (Behind a pooler in
// transaction mode the driver must not keep prepared statements: with pgx, set default_query_exec_mode=exec.)
//
// # What holds
//
//   - At most one holder believes in a lease at a time. Only the clock of the database decides. The holder counts from the
//     moment it sent the statement that took or renewed the lease, and stops a fiftieth of the length early. The clocks may
//     be hours apart, if their speeds differ by less than two percent.
//   - A lease is renewed in the background, after a third of its length. The holder knows of a loss when the lease runs out,
//     at the latest: [Lease.Lost], the contexts of [Manager.Do] and [Lease.Bind], and [Lease.Err] report it. A lost lease
//     stays lost.
//   - A stopped process cannot notice a loss. Therefore every acquisition has a fencing token ([Lease.Token], also in those
//     contexts). A write guarded by it is refused once a later token was issued: see package fence.
//   - After an error of Acquire the caller does not hold the lease. What the server may have granted is released.
//   - Leases survive a restart, a crash and a failover. With asynchronous replication the promoted standby may lack the last
//     ones: two holders can believe in a lease until it ends, and the guard refuses the first.
//   - Waiters ask again, first after 10 ms and at least every 250 ms. With [Listen] a release wakes them.
//
// # What is not guaranteed
//
//   - If the clock of the database is set ahead, or that of a promoted standby is ahead, leases end that much earlier than
//     their holders believe, and only fencing helps. Let chrony or NTP slew the clock instead of setting it.
//   - A token does not guard what a holder does outside of the database, unless the holder passes it on and the other
//     side compares it.
//   - Processes do not queue, and deadlocks are not detected: acquire several leases in one order, or with [Timeout].
//   - With [ShedLock], Java issues no tokens. So the guard does not refuse a Go holder that a Java process superseded.
//   - If all connections of the pool are busy, leases cannot be renewed: leave one free.
//   - A Manager that is not closed keeps its goroutines.
//
// The table keeps one row of about 100 bytes for every key that was ever leased, and so does the table of tokens. You may
// delete rows of the first whose expires_at has passed, and never a row of the second.
//
// docs/internals/lease.md says how it works, with the states of a lease.
//
// # Stability
//
// The names and the behaviour that this package documents stay as they are for v1.
package lease
