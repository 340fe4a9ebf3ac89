// Package sqltx begins transactions whose beginning can carry statements, whose commit can be refused and whose end is
// seen, and hands them out as genuine *sql.Tx.
//
// A [Pool] borrows a connection of the application's *sql.DB for each transaction and puts a driver of its own in
// front of it: database/sql itself makes the *sql.Tx, on a second *sql.DB that owns no connections.
//
//	begin ─► open ─► committed | rolled back                    by the goroutine that says so
//	           └───► given back (ctx ended) ─► rolled back      the connection at once, the end as above
//
// When the ctx of a transaction ends, the server side is rolled back and the connection is given back at once, from
// whatever goroutine. The [Watcher] hears at once that nothing can be committed any more, and of the end later, on the
// goroutine that uses, commits or rolls back: what it puts right in memory races with nobody.
//
// A connection goes back clean, after a commit or rollback that the server confirmed, or it is closed.
package sqltx
