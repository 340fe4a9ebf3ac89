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
// Everything that package advisory says of its locks holds here. [Acquire] is one round trip for any number of keys.
// [Transaction] begins with its locks: BEGIN and locks are one round trip, and at REPEATABLE READ and above the locks
// are older than the snapshot.
//
// A lock that is refused leaves the transaction, or the connection, as it was, so a pool can keep it.
//
// # What does not hold
//
// When a context ends during a statement, pgx closes the connection. For locks of a session use package sessionlock.
//
// # Stability
//
// The names and the behaviour that this package documents stay as they are for v1.
package pgxlock
