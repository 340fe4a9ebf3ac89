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
// # Model
//
// A lease is a row: who holds the key, and until when. To take, to renew and to give it
// back is one statement each, without a transaction around it, on whichever connection of
// the pool is free. So any driver of database/sql will do, and any pooler: nothing belongs
// to a session. (With a pooler in transaction mode the driver must keep no prepared
// statements: for pgx, default_query_exec_mode=exec in the connection string.)
//
// A lease is in one of these states:
//
//	            Acquire: nobody holds it, or its time has passed
//	(none) ───────────────────────────────────────────────► held ◄──┐ renewed after a third
//	                                                         │ │ └───┘ of its length
//	                     Release: still this holder's        │ │
//	released ◄───────────────────────────────────────────────┘ │
//	                     it ran out here, or the database      │
//	lost     ◄─────────────────────────────────────────────────┘ says that it is gone
//
// # Two clocks
//
// The clock of the database decides who holds a lease, and nothing else does: when a
// statement began, it compares and it writes by now(). The clock of the holder only makes
// it stop earlier. From the moment in which it sent the statement that took or renewed the
// lease, the holder believes in it for its length less a fiftieth. The database cannot
// have begun the statement before that moment, so it gives the lease to nobody before
//
//	sending + length  >  sending + length × 49/50  =  [Lease.Until]
//
// whatever the two clocks say, as long as they run equally fast to within two percent.
// They may be hours apart. An answer that comes after Until grants and extends nothing:
// the lease was lost then, whatever the database wrote, and an Acquire asks again.
// The holder looks at its monotonic and its wall clock, and believes the one by which more
// time has passed: a machine that slept, or whose clock was set ahead, stops too early.
//
// # Loss
//
// A lease is lost when it ran out without a renewal, or when a renewal is told that the row
// is somebody else's. Then [Lease.Lost] is closed, at Until at the latest; contexts of
// [Manager.Do] and [Lease.Bind] end with the cause [ErrLost]; [Lease.Err], [Lease.Renew]
// and [Lease.Release] return it. A renewal is tried three times before that: when a quarter of the
// length has passed without an answer, another one goes by another connection. What is lost stays lost, also where nobody else has taken it yet.
//
// A process that is stopped cannot notice. When it goes on, Err answers by the clocks at
// once, but a statement on its way is on its way. So every acquisition has a fencing token
// ([Lease.Token], and in the contexts of Do and Bind): greater than all before it, durable
// before its holder knows it, issued by the statement that takes the lease. A write that is
// guarded by it is refused once a later one was issued: see package fence, and the tag
// gormlock:"fence" of package gormlock.
//
// # Renewals
//
// All leases of a manager that are due soon are renewed by one statement: after the first
// time they stay together. A row that somebody else has locked is passed over and asked
// for again, so that it keeps no other from being renewed. A renewal is written beside the
// row that it replaces (fillfactor 50, no index on the time), and nothing grows.
//
// # Many at once
//
// Up to eight acquisitions and eight releases of a manager are on their way alone, each as
// fast as a statement is. What more goroutines ask for meanwhile gathers, and travels
// together: one statement and one commit for up to 256. It passes over rows that somebody
// has locked, and over keys that were never leased; those are asked for alone, so nobody
// waits for another's lock. A statement that takes 50 ms is not waited for.
//
// # Waiting
//
// Who finds a lease taken asks again: after 10 ms at first, every 250 ms at last, and
// when it runs out. In one process the waiters of a key stand in line, the first one asks,
// and a release in the process wakes it at once. With [Listen], a release by any other
// process does too: a waiter puts its wish down in the row, the release reads it
// and notifies, and who wishes nothing costs nothing. A refusal writes nothing.
//
// There is no queue between processes, and no detection of deadlocks: take several leases
// in one order, or with [Timeout].
//
// # What is known after an error
//
// After an error of Acquire the caller does not hold the lease. Where the statement may
// have been done all the same, because its answer got lost, the manager looks for what it
// wrote (each acquisition has a name of its own, which nobody else can have) and gives it
// back as soon as the database can be reached. The same goes for a Release without an
// answer. A release or a renewal of what is somebody else's changes nothing.
//
// # Failure of the server
//
// A restart, a crash or a failover takes no lease with it: the rows are there, and the
// holders renew them on the server that took over, if it is there in time. The statements
// that take and renew wait for their commit, whatever synchronous_commit says. With
// synchronous replication (synchronous_standby_names) the standby has what anybody was
// told; where somebody cancels that wait by hand (pg_cancel_backend) the holder is told
// what the standby may not have.
//
// With asynchronous replication the last leases may be missing on the promoted standby, so
// two can believe in one for the rest of its length, and a release may be missing, so that
// it has to run out. Tokens carry the server's timeline in their upper bits: those of a
// promoted standby are greater than all that its primary ever issued, and the guarded
// writes of the first holder are refused.
//
// # What is not guaranteed
//
//   - The clock of the database is believed. When it is set ahead, or that of a promoted
//     standby is ahead, leases run out earlier than their holders believe by as much, and
//     only fencing tells; when it is set back, they last longer. Nothing but a clock that
//     is slewed and not set (chrony, NTP) cures that.
//   - What a holder does outside the database is guarded by nobody's token, unless it is
//     given the token and looks.
//   - With [ShedLock], Java issues no tokens: a Go holder that was superseded by a Java
//     process is not refused by the guard, only one superseded by Go.
//   - A pool whose connections are all busy under leases cannot renew them: leave one.
//   - A Manager that is not closed keeps its goroutines.
//
// The table keeps one row of about 100 bytes for every key that was ever leased, and that
// of the tokens as well. Rows whose expires_at has passed may be deleted from the first
// one, never from the second.
package lease
