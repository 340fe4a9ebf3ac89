package advisory

import "github.com/gormlock/gormlock/internal/lockrequest"

var (
	// ErrNotAcquired says that a lock asked for with [Try] is held by somebody else. None of the call's locks was kept.
	ErrNotAcquired = lockrequest.ErrNotAcquired
	// ErrLockTimeout says that a lock was not granted in time: within [Timeout], or within the session's lock_timeout.
	// None of the call's locks was kept.
	ErrLockTimeout = lockrequest.ErrLockTimeout
	// ErrSnapshotTaken says that the transaction's isolation level fixes what it reads before the lock is held, so the
	// lock would not protect it. Begin the transaction with its lock (gormlock.Locking), use READ COMMITTED, or say
	// [AllowSnapshot]. No lock was taken.
	ErrSnapshotTaken = lockrequest.ErrSnapshotTaken
	// ErrStandby says that the server is a standby, which would grant locks that its primary holds. No lock was taken.
	ErrStandby = lockrequest.ErrStandby
	// ErrServer says that the server only looks like PostgreSQL, so that its locks may exclude nobody. Its text names
	// the server. PostgreSQL and what is PostgreSQL inside is not among them. No lock was taken. See [AllowServer].
	ErrServer = lockrequest.ErrServer
	// ErrOption says that an option's value, or a combination of options, means nothing.
	ErrOption = lockrequest.ErrOption
)

var (
	// ErrHeld says that a session has the lock already that it is asked to take. PostgreSQL would count it twice, and one
	// unlock would leave it held.
	ErrHeld = lockrequest.ErrHeld
	// ErrNotHeld says that a session does not have the lock that it is asked to give back.
	ErrNotHeld = lockrequest.ErrNotHeld
)
