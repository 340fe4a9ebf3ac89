// Package gormlock keeps concurrent writers of GORM applications on PostgreSQL from hurting each other, inside the
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
// A transaction-level advisory lock ([WithXactLock], [XactLock], [AcquireXactLock], [Locking]) names anything, also what
// is no row yet, and is held until its transaction ends. It excludes only those who take it too.
//
// A row lock ([WithRowLock], [LockRow], [LockRows]) holds rows that are there, against every writer, gormlock's or not,
// until the transaction ends. [WithSkipLocked] leaves out what others hold. [Claim] hands out rows of a table of work to
// many workers, each to one.
//
// A version column (the tag `gormlock:"version"`) refuses a write that was decided on an older reading of its row:
// [ErrStale], [StaleError]. Every statement that GORM builds for the model compares and moves it. [ExpectVersion],
// [IgnoreVersion] and [IfUnchanged] change that for one statement, [Touch] and [VerifyVersion] speak of one row. [SaveMerged]
// merges a struct with what others made of its row meanwhile.
//
// A fence (the tag `gormlock:"fence,key=report"`) lets the latest holder of a lock alone write a model: a holder that was
// superseded, and may not know it, is refused by the database ([ErrFenced]). Its token comes with the context of a session
// lock (package sessionlock) or a lease (package lease), from [FenceFor], or by [Fence].
//
// [Once] gives a request that arrives twice one effect, and the stored result the second time.
//
// [Transaction] is db.Transaction with locks that cost no round trip, an isolation level, and retries of what a retry
// can cure ([IsRetryable]).
//
// # What is guaranteed
//
// A lock is taken inside the transaction that runs the statement, in a statement of its own before it, or nothing is
// executed and the error says why. After an error the transaction is as usable as it was and holds none of the locks
// that were asked for, unless the connection is gone.
//
// # What is not
//
// A fence does not guard what raw SQL writes: put the token's Guard into it, or call [FenceTx] first.
//
// A version is neither compared nor moved by raw SQL, by db.Exec, and by db.Table("…") without a model, and not compared
// by statements that name no struct, such as Model(&T{}).Where(…): see [VersionTrigger] and [ExpectVersion].
//
// An advisory lock does not stop a writer that does not ask for it. Locks on a db that is handed to db.Transaction are
// taken by the statements in it, not before. Where the application brings a *sql.Tx or a single connection of its own
// (db.Connection), gormlock does not see that transaction's end unless it runs in [Transaction]: what is written in it
// counts as not read afterwards.
//
// Inside a transaction tx.DB() is not the *sql.DB the application opened but one that lends its connections; and
// statements that were prepared by a tool outside of GORM on the *sql.DB do not run in it. [PlainTransactions] gives
// both back and costs a round trip for each lock on a statement's own transaction.
//
// # Stability
//
// The names and the behaviour that this package documents stay as they are for v1.
package gormlock
