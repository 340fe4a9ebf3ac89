// Package advisory takes PostgreSQL's transaction-level advisory locks on any *sql.Tx: for code that holds a
// transaction without GORM, and as the one implementation under gormlock's GORM doors.
//
//	err := advisory.Acquire(ctx, tx, []lockkey.Key{lockkey.Of("invoice", 42)}, advisory.Timeout(time.Second))
//
// # What holds
//
// Any number of keys is one call and one round trip. The keys are taken in one total order whatever order they are
// given in, so that two calls of this package never deadlock with each other; a key given twice is taken once, and a
// key asked for both shared and exclusive is taken exclusive. Either all are held when the call returns nil, or none
// of them is held more than before and the error says why.
//
// A lock ends with the transaction, or with the savepoint it was first taken under. There is no release.
//
// The locks are taken under a savepoint: after [ErrLockTimeout], [ErrNotAcquired] or any other error that leaves the
// connection alive the transaction is as usable as it was, and its lock_timeout is what it was.
//
// # What does not hold
//
// A lock protects what is read after it. At REPEATABLE READ and SERIALIZABLE the snapshot is taken by the lock's own
// statement at the latest, before the lock is held: that is [ErrSnapshotTaken], unless [AllowSnapshot] says that only
// the exclusion matters. gormlock.Transaction begins the transaction with its lock.
//
// Advisory locks live in one database of one server. A standby would grant what its primary holds: that is
// [ErrStandby].
//
// When ctx ends during a wait the driver closes the connection, and the transaction with it.
//
// # Stability
//
// The names and the behaviour that this package documents stay as they are for v1.
package advisory
