package gormlock

import (
	"errors"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

var (
	// ErrNotInstalled says that the database has no gormlock plugin: db.Use(gormlock.New()).
	ErrNotInstalled = fault.ErrNotInstalled
	// ErrNotPostgres says that the feature needs PostgreSQL and the database is another.
	ErrNotPostgres = fault.ErrNotPostgres
	// ErrNoTransaction says that a lock was asked for where no transaction is open: it would be gone before the
	// statement is over. Use [Transaction], or a statement that GORM wraps in one. Nothing was executed.
	ErrNoTransaction = fault.ErrNoTransaction
	// ErrSubQuery says that a lock stands on a part of a statement, a sub-query or a group of conditions, which takes
	// none. Put it on the statement around it. Nothing was executed.
	ErrSubQuery = fault.ErrSubQuery
	// ErrOption says that an option's value, or a combination of options, means nothing.
	ErrOption = advisory.ErrOption
	// ErrSnapshotTaken says that the transaction's snapshot may be older than the lock. See [advisory.ErrSnapshotTaken].
	ErrSnapshotTaken = advisory.ErrSnapshotTaken
	// ErrNotAcquired says that a lock asked for with [Try] is held by somebody else.
	ErrNotAcquired = advisory.ErrNotAcquired
	// ErrLockTimeout says that a lock was not granted in time.
	ErrLockTimeout = advisory.ErrLockTimeout
	// ErrStandby says that a lock was asked for on a standby server, where it would exclude nobody.
	ErrStandby = advisory.ErrStandby
	// ErrServer says that the server only looks like PostgreSQL. See [advisory.ErrServer] and [AllowServer].
	ErrServer = advisory.ErrServer
)

// IsRetryable reports whether running the whole transaction again can cure err: a serialization failure (40001), a
// deadlock (40P01; 1213 of MariaDB), a wait of MariaDB that innodb_lock_wait_timeout ended, a stale version. A lock that was not granted in time is not among them: who bounds a wait wants its
// answer. Nor is a version that the transaction itself has made stale: see [StaleError]; nor a [ConflictError], which somebody
// has to decide.
func IsRetryable(err error) bool {
	if conflict := (*ConflictError)(nil); errors.As(err, &conflict) {
		return false
	}
	if stale := (*StaleError)(nil); errors.As(err, &stale) {
		return !stale.own
	}
	switch sqlstate.Of(err) {
	case sqlstate.SerializationFailure, sqlstate.DeadlockDetected:
		return true
	}
	return errors.Is(err, ErrStale) || sqlstate.MayEndTransaction(err) && !errors.Is(err, ErrLockTimeout) && !errors.Is(err, ErrNotAcquired)
}
