package gormlock

import (
	"errors"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

var (
	// ErrNotInstalled says that the database has no gormlock plugin. Install it: db.Use(gormlock.New()).
	ErrNotInstalled = fault.ErrNotInstalled
	// ErrNotPostgres says that the feature needs PostgreSQL and the database is not PostgreSQL. Tests on SQLite can take the
	// locks of keys with gormlocktest.PretendLocks.
	ErrNotPostgres = fault.ErrNotPostgres
	// ErrNoTransaction says that a lock was asked for without an open transaction: it would end before the statement does.
	// Use [Transaction], or a statement that GORM wraps in one. Nothing was executed.
	ErrNoTransaction = fault.ErrNoTransaction
	// ErrSubQuery says that a lock is on a part of a statement that cannot take one: a sub-query or a group of conditions.
	// Put it on the statement around it. Nothing was executed.
	ErrSubQuery = fault.ErrSubQuery
	// ErrOption says that an option has an invalid value, or that options cannot be combined.
	ErrOption = advisory.ErrOption
	// ErrSnapshotTaken says that the transaction's snapshot may be older than the lock. See [advisory.ErrSnapshotTaken].
	ErrSnapshotTaken = advisory.ErrSnapshotTaken
	// ErrNotAcquired says that a lock asked for with [Try] is held by somebody else.
	ErrNotAcquired = advisory.ErrNotAcquired
	// ErrLockTimeout says that a lock was not granted in time.
	ErrLockTimeout = advisory.ErrLockTimeout
	// ErrStandby says that a lock or [Once] was asked for on a standby server, where it would exclude nobody.
	ErrStandby = advisory.ErrStandby
	// ErrServer says that the server only looks like PostgreSQL. See [advisory.ErrServer] and [AllowServer].
	ErrServer = advisory.ErrServer
)

// IsRetryable reports whether running the whole transaction again can cure err: a serialization failure (40001), a deadlock
// (40P01; 1213 of MariaDB), a wait of MariaDB that innodb_lock_wait_timeout ended, a stale version. It is false for a lock
// that was not granted in time, because a caller that bounds a wait wants its answer. It is also false for a version that
// the transaction itself has made stale (see [StaleError]), and for a [ConflictError], which a person has to resolve.
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
