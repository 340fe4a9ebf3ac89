// Package gormlock keeps concurrent writers of GORM applications on PostgreSQL from overwriting each other, inside the
// transactions they already have.
//
//	db.Use(gormlock.New())
//
//	key := gormlock.Key("invoice", 42)
//	db.Scopes(gormlock.WithXactLock(key)).Create(&invoice)                  // GORM's own transaction is enough
//	tx.Scopes(gormlock.WithXactLock(key, gormlock.Try())).First(&invoice)   // ErrNotAcquired instead of waiting
//	err := gormlock.Transaction(db, func(tx *gorm.DB) error { … },
//		gormlock.Locking(key, gormlock.Timeout(time.Second)), gormlock.Attempts(20))
//
// # The promise
//
// No silent no-op and no silent overwrite: what a caller asks for is done, or the caller gets an error that says which
// thing was not done.
//
// # Which tool
//
// A transaction-level advisory lock ([WithXactLock], [XactLock], [AcquireXactLock], [Locking]) is a lock on a name, held
// until its transaction ends. It excludes only those who take it too. The name need not be a row.
//
// A row lock ([WithRowLock], [LockRow], [LockRows]) blocks every other writer of existing rows, including those that do
// not use gormlock, until the transaction ends. [WithSkipLocked] skips rows that others have locked. [Claim] hands out rows
// of a table of work to many workers, each row to one.
//
// A version column (the tag `gormlock:"version"`) refuses a write if somebody else wrote the row after it was read:
// [ErrStale], [StaleError]. Every statement that GORM builds for the model compares the version and moves it.
// [ExpectVersion], [IgnoreVersion] and [IfUnchanged] change that for one statement. [Touch] moves the version of a row
// without another change. [VerifyVersion] checks the version of a row and locks it. [SaveMerged] merges a struct with what
// others wrote to its row. With the tag `gormlock:"root"` on a belongs-to, each write of a part, such as an order line,
// moves the version of its root, the order.
//
// A fence (the tag `gormlock:"fence,key=report"`) lets only the latest holder of a lock write a model. The database refuses
// a holder that was superseded, even if that holder does not know it ([ErrFenced]). The token comes with the context of a
// session lock (package sessionlock) or a lease (package lease), from [FenceFor], or by [Fence].
//
// [Once] gives a request that arrives twice one effect. The second call returns the stored result.
//
// [Transaction] is db.Transaction with locks that cost no round trip, an isolation level, and retries of the errors that a
// retry can cure ([IsRetryable]).
//
// # What is guaranteed
//
// A lock is taken inside the transaction that runs the statement, before the statement. If it cannot be taken, nothing is
// executed and the error says why. After an error the transaction is as usable as before and holds none of the locks that
// were asked for, unless the connection is gone.
//
// # What is not
//
// A fence does not guard what raw SQL writes: put the token's Guard into the text, or call [FenceTx] first.
//
// Raw SQL, db.Exec, and db.Table("…") without a model neither compare nor move a version: see [VersionTrigger]. Statements
// without a struct, such as Model(&T{}).Where(…), move it and do not compare it: see [ExpectVersion].
//
// An advisory lock does not stop a writer that does not ask for it. If you put a lock on db and call db.Transaction,
// the statements in the transaction take the lock, and nothing is held before the first of them. If the application
// begins a transaction on a *sql.Tx or a single connection of its own (db.Connection), gormlock does not see its end,
// unless it runs in [Transaction]. Structs written in it count as not read afterwards.
//
// Inside a transaction tx.DB() is not the *sql.DB that the application opened, but one that lends its connections.
// Statements that a tool outside of GORM prepared on the *sql.DB do not run in it. [PlainTransactions] changes both back,
// and costs a round trip for each lock on a statement's own transaction.
//
// # Stability
//
// The names and the behaviour that this package documents stay as they are for v1.
package gormlock
