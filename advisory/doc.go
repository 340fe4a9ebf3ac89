// Package advisory takes PostgreSQL's transaction-level advisory locks on a *sql.Tx, for code without GORM. The locks of
// package gormlock are taken by the same code.
//
//	err := advisory.Acquire(ctx, tx, []lockkey.Key{lockkey.Of("invoice", 42)}, advisory.Timeout(time.Second))
//
// # What holds
//
// One call takes any number of keys in one round trip. It takes them in one fixed order, whatever order they are given in,
// so two calls never deadlock with each other. A key given twice is taken once, and a key asked for both shared and
// exclusive is taken exclusive. The call takes all keys, or none, and then the error says why.
//
// A lock ends with the transaction, or with the savepoint it was first taken under. There is no release.
//
// The locks are taken under a savepoint: after [ErrLockTimeout], [ErrNotAcquired] or any other error that leaves the
// connection alive, the transaction is as usable as before, and has its old lock_timeout.
//
// # What does not hold
//
// A lock protects what is read after it. At REPEATABLE READ and SERIALIZABLE the statement that takes the lock takes
// the snapshot too, before the lock is held. That is [ErrSnapshotTaken]. Use [AllowSnapshot] if only the exclusion
// matters. gormlock.Transaction takes its locks before the snapshot.
//
// A database other than PostgreSQL has no such locks: [ErrNotPostgres].
//
// Advisory locks belong to one database of one server. A standby would grant what its primary holds, so there it is
// [ErrStandby].
//
// When ctx ends during a wait the driver closes the connection, and the transaction with it.
//
// # Stability
//
// The names and the behaviour that this package documents stay as they are for v1.
package advisory
