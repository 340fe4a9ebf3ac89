package advisory

import "github.com/gormlock/gormlock/internal/lockrequest"

var (
	// ErrNotAcquired says that a lock asked for with [Try] is held by somebody else. None of the call's locks was kept.
	ErrNotAcquired = lockrequest.ErrNotAcquired
	// ErrLockTimeout says that a lock was not granted in time: within [Timeout], or within the session's lock_timeout.
	// None of the call's locks was kept.
	ErrLockTimeout = lockrequest.ErrLockTimeout
	// ErrSnapshotTaken says that the transaction's isolation level fixes what it reads before the lock is held, so the
	// lock would not protect it. Begin the transaction with its lock (gormlock.Locking), use READ COMMITTED, or use
	// [AllowSnapshot]. No lock was taken.
	ErrSnapshotTaken = lockrequest.ErrSnapshotTaken
	// ErrStandby says that the server is a standby, which would grant locks that its primary holds. No lock was taken.
	ErrStandby = lockrequest.ErrStandby
	// ErrServer says that the server only looks like PostgreSQL, so its locks may exclude nobody. Its text names the
	// server. No lock was taken. PostgreSQL, and servers that are PostgreSQL inside, never cause it. See
	// [AllowServer].
	ErrServer = lockrequest.ErrServer
	// ErrNotPostgres says that the database is not PostgreSQL but another, such as MariaDB or SQLite. Nothing was done.
	// Package gormlock, and every package here that is given a pool, a connection or a transaction, returns this same error.
	ErrNotPostgres = lockrequest.ErrNotPostgres
	// ErrOption says that an option has an invalid value, or that options cannot be combined. No lock was taken.
	ErrOption = lockrequest.ErrOption
)

var (
	// ErrPooler says that there is a pooler between the program and the server. The lock was not taken: it would stay
	// with a server connection that others use. See [AllowPooler].
	ErrPooler = lockrequest.ErrPooler
	// ErrHeld says that the session already has the lock. PostgreSQL would count it twice, and one unlock would leave
	// it held.
	ErrHeld = lockrequest.ErrHeld
	// ErrNotHeld says that the session does not have the lock that it should release.
	ErrNotHeld = lockrequest.ErrNotHeld
)
