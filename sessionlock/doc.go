// Package sessionlock holds PostgreSQL's session-level advisory locks: for work longer
// than a transaction, singletons, leaders and migrations.
//
//	m, err := sessionlock.Open(ctx, dsn, sessionlock.Owner("billing-7"))
//	defer m.Close(context.WithoutCancel(ctx))
//	err = m.Do(ctx, lockkey.Of("billing", "nightly"), func(ctx context.Context) error {
//		// ctx ends with the cause ErrLost when the lock is lost
//	})
//
// # Model
//
// A session lock belongs to a server session and ends with it. So a [Manager] has
// connections of its own, which no pool lends to anybody else, and never more than it
// needs:
//
//   - home: one connection, for any number of locks. What concurrent goroutines ask for
//     and give back travels together: one statement for all tries, one for all unlocks.
//     Nothing on it ever waits for a lock, so nobody waits behind a waiter.
//   - at most [MaxWaiters] connections on which contended keys wait in the server's
//     queue, made when needed and closed when idle. A lock cannot move between sessions:
//     granted there, it stays there until it is released.
//   - one for fencing tokens, when [Fenced] is used: their commits may wait for a standby.
//
// PostgreSQL grants a lock again to the session that has it, so the manager keeps a
// ledger: two goroutines never share an exclusive lock, a shared one is taken from the
// server once for all of them. Re-entrancy is refused, not counted: under the context of
// [Manager.Do] or [Lock.Bind] the same key again is [ErrReentrant], because a count
// would let two parts of a program believe that each holds the lock alone. Without such
// a context a second Acquire is a second caller and waits.
//
// A key in the ledger is in one of these states:
//
//	        Acquire         try: yes
//	(none) ────────► asking ────────► held ◄─────────────┐ hand-over to the next
//	                  ▲  │ try: no     │ └───────────────┘ of this process
//	    somebody here │  ▼             │ Release
//	    still wants it│ waiting ──────►│ granted on a waiter's connection, or by asking again
//	                  │                ▼
//	                  └──────────── unlocking ────────► (none)
//
// and a [Lock] is held, then either released or lost, once.
//
// # Waiting
//
// Waiters of one process stand in line in the order they came. A key goes from holder
// to holder inside the process at most 16 times, then the server gets it, and with it
// the processes in the server's queue; [Fair] makes that every time. Shared holders have
// nothing to give to the server while some of them stay: after 16 have joined it is asked
// whether a session waits for the key. If one does, who comes now waits behind it, as in
// the server's own queue; if not, all join freely for the time of a slice.
//
// [Manager.TryAcquire] stands in no line: it is answered by a question that was put to
// the server after it came, or by what this process has or waits for itself.
//
// A wait on the server is cut into slices of 0.8 × deadlock_timeout, at most 800 ms: a
// statement that waits holds a snapshot, which holds back vacuum, and past
// deadlock_timeout CREATE INDEX CONCURRENTLY and the waiter would be taken for a
// deadlock. Between two slices the place in the server's queue is lost, so the order
// between processes is first come, first served within a slice and chance beyond.
// Where more keys are contended than there are connections to wait on, the key that has
// waited longest goes next, and the others are asked for again every 50 ms. That gets
// them nothing while any process blocks on the same key: raise [MaxWaiters] then.
//
// Nobody detects a deadlock between holders that wait for each other's keys: the
// server sees slices and pollers, not holders. [Manager.AcquireAll] takes several
// without one; otherwise take keys in one order, or with [Timeout].
//
// # What is known after an error
//
// After an error of Acquire the caller does not hold the lock. PostgreSQL alone does not
// give that: a pg_advisory_lock whose lock_timeout or cancel arrives in the same moment
// as the grant reports an error and keeps the lock. So each slice is two statements in
// one transaction, pg_advisory_xact_lock, which waits, then pg_advisory_lock, which
// has nothing to wait for: an error undoes the first, and the second never ran. The
// context of a caller never reaches the connection. Who gives up leaves, and what was
// on its way is given back when it arrives. After any other error of a statement all
// of its keys are unlocked before they are asked for one by one; if that fails too, the
// connection is closed. What was on its way when a session ended is asked again on the
// next one; an unlock that was on its way is [ErrLost], and so is a token an error, for
// its number may have been issued.
//
// # Loss
//
// A lock is lost when its session ends. Then [Lock.Lost] is closed, contexts of
// [Manager.Do] and [Lock.Bind] end with the cause [ErrLost], [Lock.Err] and
// [Lock.Release] return it, all before any goroutine of this process can be granted the
// key again. The manager connects again, with backoff, and those who wait go on waiting:
// while there is no connection an Acquire waits for one, and says so when its time is over.
//
// Who knows first, the holder or the next one? It depends on how the session ended.
//
// The server, a proxy or a reset ended it (pg_terminate_backend, crash, restart): the
// connection says so at once, and the holder is told within milliseconds. The server
// may have granted the lock to somebody else by then: either can be first, by a fraction
// of a millisecond.
//
// The network went silent: with the heartbeat h ([Heartbeat], 2 s) a session that is
// idle sends an empty message every h, and is lost when D = 3h have passed since the
// sending of the last message that was answered. The server's side of the connection
// is set to end it later:
//
//	tcp_keepalives_idle = 3h, tcp_keepalives_interval = h, tcp_keepalives_count = 2
//	tcp_user_timeout = 5h
//
// The server heard from us last when it received the message that was answered, or a
// later one; so it waits from then or later: with nothing in flight 3h until its first
// probe and 2h until the second stays unanswered, with an answer in flight 5h. Both are
// more than 3h after our sending, so the holder knows at least 2h before the lock is
// free. Both settings are needed: keepalives are not sent while an answer is in flight,
// and tcp_user_timeout does nothing to an idle connection. This holds for a direct
// TCP connection; a proxy in between has clocks of its own, and a Unix socket has no
// silence.
//
// The process was paused (SIGSTOP, a frozen VM, a long garbage collection elsewhere): it
// cannot know anything. When it wakes, Err compares monotonic and wall clock with
// the last proof itself and answers before any goroutine of the manager ran, but the
// statement after it can be too late all the same.
//
// # Fencing
//
// So no lock service can promise that a holder which believes is a holder that holds.
// The database can refuse: [Fenced] gives each acquisition a token greater than all
// before it ([Lock.Token], and in the context of Do and Bind), and a write guarded by it
// fails once a later one was issued. See package fence.
//
// # What is refused
//
// [Open] refuses where session locks would lie: behind a pooler that gives a server
// connection to other clients between statements ([ErrPooler]), on a standby
// ([ErrStandby]), and on an engine that grants one lock to two sessions
// ([ErrNoExclusion]), which is tried out, not concluded from a version. All connections of
// a manager reach one run of one server: when the address leads to another one after a
// failover, what is held on the old one is lost.
//
// # What is not guaranteed
//
//   - Between two servers that both believe to be the primary there is no exclusion.
//   - A key that another program takes by pg_advisory_lock with the same id excludes
//     us and is excluded; one that program releases with pg_advisory_unlock_all on its
//     own session is none of ours.
//   - A session that waits when its manager is closed or killed stays in the server's
//     queue until the server looks at its connection: at the end of the slice, or of h.
//   - A Manager that is not closed keeps its connections and goroutines.
package sessionlock
