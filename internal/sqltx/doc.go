// Package sqltx begins transactions and returns genuine *sql.Tx. Statements can travel with the BEGIN, a [Watcher] can
// refuse the commit, and it hears of the end.
//
// A [Pool] borrows a connection of the application's *sql.DB for each transaction, and puts a driver of its own in
// front of it. database/sql itself makes the *sql.Tx, on a second *sql.DB that owns no connections.
//
//	begin ─► open ─► committed | rolled back                    by the goroutine that says so
//	           └───► given back (ctx ended) ─► rolled back      the connection at once, the end as above
//
// When the ctx of a transaction ends, the transaction is rolled back on the server and the connection is given back at
// once, from any goroutine. The [Watcher] hears at once that nothing can be committed any more. It hears of the end
// later, on the goroutine that uses, commits or rolls back the transaction: so it can restore structs without a race.
//
// A connection goes back clean, after a commit or rollback that the server confirmed, or it is closed.
package sqltx
