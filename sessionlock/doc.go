// Package sessionlock holds PostgreSQL's session-level advisory locks, for work that takes longer than a transaction:
// singletons, leaders, migrations.
//
//	m, err := sessionlock.Open(ctx, dsn, sessionlock.Owner("billing-7"))
//	defer m.Close(context.WithoutCancel(ctx))
//	err = m.Do(ctx, lockkey.Of("billing", "nightly"), func(ctx context.Context) error {
//		// ctx ends with the cause ErrLost when the lock is lost
//	})
//
// A session lock belongs to a server session and ends with it. A [Manager] has connections of its own: one holds any
// number of locks, at most [MaxWaiters] more wait for contended keys, and one issues the tokens of [Fenced]. Two
// goroutines never share an exclusive lock. Asking for a key again under the context of its holder is [ErrReentrant].
//
// # Errors
//
// After an error of Acquire the caller does not hold the lock, whatever the error. The end of a caller's context does
// not close a connection: the caller leaves, and a lock that is granted too late is released.
//
// # Waiting
//
// Waiters of one process are served in the order they came. A key passes from holder to holder inside the process at
// most 16 times, then other processes get a turn; with [Fair] they get it every time. A wait on the server is cut into
// slices of at most 800 ms, so that it delays neither vacuum nor CREATE INDEX CONCURRENTLY. Between processes the order
// is first come, first served within a slice, and chance beyond. If more than [MaxWaiters] keys are contended, the
// others are tried every 50 ms, and get nothing while another process waits for the same key: raise MaxWaiters then.
// Deadlocks between holders are not detected: acquire several keys with [Manager.AcquireAll], in one order, or with
// [Timeout].
//
// # Loss
//
// A lock is lost when its session ends. Then [Lock.Lost] is closed, contexts of [Manager.Do] and [Lock.Bind] end with the
// cause [ErrLost], and [Lock.Err] and [Lock.Release] return it, before anybody in this process can be granted the key.
// The manager connects again, and waiters go on waiting. Who learns of the loss first, this holder or the next one?
//
//   - The server, a proxy or a reset ended the session: the holder knows within milliseconds. Either can be first.
//   - The network went silent: the holder knows after three times [Heartbeat], at least two heartbeats before the server
//     frees the lock. This holds for a direct TCP connection.
//   - The process was paused: it cannot know. Err compares clocks when it is called, but the statement after it can still
//     be too late. Use [Fenced]: each acquisition has a token greater than all before it, and the database refuses a
//     guarded write once a later token was issued. See package fence.
//
// # What is refused
//
// [Open] refuses to work where a session lock would exclude nobody: behind a pooler in transaction mode ([ErrPooler]), on
// a standby ([ErrStandby]), and on an engine that grants one lock to two sessions ([ErrNoExclusion]).
//
// # What is not guaranteed
//
//   - Between two servers that both believe to be the primary there is no exclusion.
//   - A program that takes a key with pg_advisory_lock excludes the manager. One that unlocks the key on its own session
//     takes nothing from the manager.
//   - A session that waits when its manager is closed or killed stays in the server's queue, and may be granted the lock
//     for a moment, until the server looks at its connection: at the end of the slice, or after one heartbeat.
//   - A Manager that is not closed keeps its connections and goroutines.
//
// docs/internals/sessionlock.md says how it works, with the states of a key.
//
// # Stability
//
// The names and the behaviour that this package documents stay as they are for v1.
package sessionlock
