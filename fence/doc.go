// Package fence gives the holders of a lock numbers that grow, and lets the
// database refuse the writes of a holder that was superseded.
//
// # Why
//
// No lock service can stop a process that was paused: it wakes up, believes it
// still holds the lock, and writes. A fencing token can. Every acquisition gets a
// [Token] with a number greater than all before it. The database knows the latest
// number issued for the key, and refuses a write with a smaller one.
//
// # The table
//
// The latest token of each key is a row in the table gormlock_fence ([Schema]). It
// is incremented after the lock is held, and committed before the holder sees it.
// A sequence would not do: it can hand out one value twice after a crash. Nor
// would a transaction id, which is assigned before the lock is held. The upper bits
// of a number are the server's timeline, so a standby promoted without the last
// commits of its primary repeats no number. Tokens of different keys cannot be
// compared.
//
// Never delete a row: a number that is issued again would let an old holder in. The
// table grows to one row of about 80 bytes for every key that was ever fenced.
//
// The search_path decides which table is used. The program that issues tokens and
// the one that writes with them must find the same table.
//
// # Guarding a write
//
// Comparing a token with the one stored in the written row is not enough: the
// later holder may not have written yet, and an insert has nothing to compare
// with. So a guarded write asks the token table, in the same statement:
//
//	tag, err := db.ExecContext(ctx,
//		"UPDATE reports SET body = $1 WHERE id = $2 AND "+token.Guard(3),
//		append([]any{body, id}, token.Args()...)...)
//
// If no row was changed, a later token has been issued, or the row does not exist. An insert takes its token from the table,
// which fails on a NOT NULL column once a later one has been issued:
//
//	"INSERT INTO reports (body, fence) VALUES ($1, "+token.Value(2)+")"
//
// # What holds
//
//   - A guarded statement that starts after a later token was issued changes nothing, at READ COMMITTED. At REPEATABLE READ
//     and above this holds only if the whole transaction starts after that, because all of its statements see the snapshot
//     of its start.
//   - A guarded statement that was already running when the later token was issued,
//     or whose transaction commits afterwards, is not undone. If that matters, call
//     [Latest] first in the transaction: it locks the token's row, and a later token
//     waits until the transaction has ended. [Token.Value] does the same for the
//     inserts it is used in.
//   - A write without a guard is not checked.
//
// # Stability
//
// The names and the behaviour that this package documents stay as they are for v1.
package fence
