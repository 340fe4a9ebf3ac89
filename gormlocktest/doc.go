// Package gormlocktest helps to test programs that use gormlock.
//
// # On a real server
//
// What a lock protects is seen when somebody else wants it. [Hold] is that somebody
// else, [WaitBlocked] says when the code under test has got as far as waiting, so that
// no test needs to sleep, and [AssertFree] that it left nothing behind:
//
//	rival := gormlocktest.Hold(t, pool, key)
//	done := make(chan error, 1)
//	go func() { done <- Transfer(db, from, to) }()
//	gormlocktest.WaitBlocked(t, pool, key, 1) // it asks for the lock …
//	rival.Release()
//	err := <-done // … and goes on when it is free
//	gormlocktest.AssertFree(t, pool, key)
//
// The pool is any *sql.DB on the same database, such as that of db.DB(). It lends one
// connection to each lock held and one to each look: where the code under test may use
// up its pool, open another.
//
// # With go-sqlmock
//
// Statements look as without gormlock, with two exceptions: an advisory lock is a text
// of its own, which travels with the BEGIN where it can, and a versioned write has its
// version in SET and WHERE. The Expect functions know these texts. They need sqlmock's
// default matcher, regular expressions.
//
//	pool, mock, err := sqlmock.New()
//	gormlocktest.ExpectBegin(t, mock, []lockkey.Key{key})
//	mock.ExpectQuery(`SELECT .* FROM "accounts"`).WillReturnRows(…)
//	mock.ExpectExec(`UPDATE "accounts" SET .*"version"="accounts"."version"\+1 WHERE .*"version"=\$`).
//		WillReturnResult(sqlmock.NewResult(0, 1)) // 0 rows: the write is stale, and a SELECT asks why
//	gormlocktest.ExpectCommit(mock)
//
// A transaction without locks is what it always was: mock.ExpectBegin and
// mock.ExpectCommit.
package gormlocktest
