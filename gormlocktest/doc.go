// Package gormlocktest helps to test programs that use gormlock.
//
// # On a real server
//
// [Hold] takes a lock as a rival of the code under test. [WaitBlocked] returns when that code waits, so no test has to
// sleep. [AssertFree] checks that it left no lock behind:
//
//	rival := gormlocktest.Hold(t, pool, key)
//	done := make(chan error, 1)
//	go func() { done <- Transfer(db, from, to) }()
//	gormlocktest.WaitBlocked(t, pool, key, 1) // it asks for the lock …
//	rival.Release()
//	err := <-done // … and goes on when it is free
//	gormlocktest.AssertFree(t, pool, key)
//
// The pool is any *sql.DB on the same database, such as that of db.DB(). Each held
// lock and each check takes one connection of it. If the code under test may use up
// its pool, open another.
//
// These are advisory locks. A lease is a row of its table: lease.Manager.Holder says who
// has it.
//
// # With go-sqlmock
//
// Expect the statements of plain GORM as always. The Expect functions expect what gormlock adds and changes. They need
// sqlmock's default matcher, regular expressions, and must be called in the order in which gormlock sends:
//
//	pool, mock, err := sqlmock.New()
//	gormlocktest.ExpectBegin(t, mock, []lockkey.Key{key})
//	mock.ExpectQuery(`SELECT .* FROM "accounts"`).WillReturnRows(…)
//	gormlocktest.ExpectVersionedUpdate(mock, "accounts", "version")
//	gormlocktest.ExpectCommit(mock)
//
// For advisory locks:
//
//   - [gormlock.Transaction] with Locking, and a statement with WithXactLock outside of a transaction: the locks are sent
//     with the BEGIN. Expect it with [ExpectBegin], or with [ExpectBeginTx] if there is an isolation level, ReadOnly, or
//     locks with options of their own. At the end comes [ExpectCommit] or [ExpectRollback].
//   - AcquireXactLock, WithXactLock and Locking in an open transaction: [ExpectAcquire].
//   - With PlainTransactions, and on db.Connection, no lock is sent with the BEGIN: mock.ExpectBegin, [ExpectAcquire], and
//     mock.ExpectCommit or mock.ExpectRollback.
//   - A transaction without Locking is what it always was: mock.ExpectBegin and
//     mock.ExpectCommit, at every isolation level.
//   - With Attempts each run is expected, from its BEGIN to its end. An error with a
//     method SQLState, such as &pgconn.PgError{Code: "40001"}, brings about the next.
//
// A refused Try is [Refused] or [ErrRefused], a Timeout that has passed is
// [ErrLockNotAvailable]; [ExpectUndo] comes after an error in an open transaction.
//
// A row lock is part of the text of its query. Try, Timeout and the DefaultTimeout of the plugin also send something before
// and after it:
//
//   - A query that waits or skips: mock.ExpectQuery, with FOR UPDATE or FOR UPDATE SKIP
//     LOCKED at its end.
//   - WithRowLock, LockRow and LockRows with Timeout: [ExpectRowLock], the query, and
//     [ExpectRowLocked] or [ExpectUndo]. Queries of Preload that are locked too have
//     theirs after it, one by one.
//   - WithRowLock and LockRows with Try: the same, around FOR UPDATE NOWAIT.
//   - LockRow with Try is FOR UPDATE SKIP LOCKED with nothing around it. If that
//     returns no row, SELECT 1 asks whether the row exists: if so, the error is
//     ErrNotAcquired, otherwise gorm.ErrRecordNotFound. With Preloaded it is as WithRowLock.
//
// Writes of models with a version or a fence compare it:
//
//   - [ExpectVersionedUpdate], [ExpectVersionedDelete] and [ExpectVersionedReturning], and
//     after one that changed too few rows [ExpectStale], also for VerifyVersion.
//   - [ExpectFencedUpdate], and after one that changed no row [ExpectFenced].
//   - FenceTx is mock.ExpectQuery(`FROM gormlock_fence .* FOR SHARE$`), which returns one
//     row with the latest token. FenceFor is [ExpectAcquire] and then
//     mock.ExpectQuery(`INSERT INTO gormlock_fence .* RETURNING token$`), which returns
//     one row with the new one.
//
// [ExpectClaim] is a whole Claim. [ExpectOnce] begins a Once with a new key.
// [ExpectOnceFound] is a whole Once with a key that was stored before.
//
// There is no function for creates and upserts with a version or a fence, fenced deletes,
// writes of many rows by conditions, a model with both, IfUnchanged, and a version that
// is compared with NULL or 0. Each is one statement: expect it by mock.ExpectExec, or by
// mock.ExpectQuery if it ends in RETURNING, with as much of its text as the test is
// about. If it changes too few rows, a SELECT that asks why may follow.
// MigrateOnce, SweepOnce and fence.Migrate are one mock.ExpectExec each.
//
// Packages sessionlock and lease cannot be tested this way: sessionlock has connections
// of its own, and what lease sends depends on time and on other callers. Nor can a
// server whose default isolation level is REPEATABLE READ or above.
//
// # On SQLite
//
// [PretendLocks] keeps the advisory locks of transactions in the memory of the test, so it
// needs no server. Its documentation says what is pretended and what is not.
//
// # Stability
//
// This package may still change before v1: names may move or go.
package gormlocktest
