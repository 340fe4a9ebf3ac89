// Package pgxlock takes PostgreSQL's transaction-level advisory locks on transactions of pgx: for programs that use pgx or
// sqlc, alone or beside GORM. The keys, options and errors are those of package advisory, so a program with GORM, one with
// database/sql and one with pgx exclude each other.
//
//	err := pgxlock.Acquire(ctx, tx, []lockkey.Key{lockkey.Of("invoice", 42)}, advisory.Timeout(time.Second))
//
//	err := pgxlock.Transaction(ctx, pool, func(tx pgx.Tx) error {
//		return queries.WithTx(tx).PayInvoice(ctx, 42) // of sqlc
//	}, pgxlock.Locking(lockkey.Of("invoice", 42)), pgxlock.Attempts(20))
//
// # What holds
//
// All that package advisory says of its locks holds here. [Acquire] is one round trip for any number of keys.
// [Transaction] begins with its locks: BEGIN and locks are one round trip, and at REPEATABLE READ and above the locks are
// older than the snapshot.
//
// What is refused leaves the transaction, or the connection, as it was: a pool keeps it.
//
// # What does not hold
//
// pgx closes a connection whose statement was cut off by its context. Locks of the session are in package sessionlock.
//
// # Stability
//
// The names and the behaviour that this package documents stay as they are for v1.
package pgxlock
