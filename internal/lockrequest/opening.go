package lockrequest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Opening is what a transaction begins with so that it holds its locks from the start. Its texts travel with the
// statement that begins it: see package sqltx.
//
// A failure leaves the connection inside an aborted transaction, or outside of one. If [Opening.Clean] reports true, a
// ROLLBACK makes the connection usable. Otherwise the session may still hold a lock, and only closing it is safe.
type Opening struct {
	request  *Request
	snapshot bool
}

// Opening is how a transaction with the request's locks begins. snapshot is for isolation levels that keep one snapshot.
// With it, the session takes the locks before the transaction begins, and then the transaction takes them over. So its
// snapshot is younger than its locks.
func (r *Request) Opening(snapshot bool) Opening { return Opening{r, snapshot} }

// Around is what to send before and after the statement that begins the transaction, all in one message without arguments.
// before is empty or ends in a semicolon and a space. after follows a semicolon.
func (o Opening) Around() (before, after string) {
	r := o.request
	switch {
	case !o.snapshot && r.try:
		return "", r.answerSQL()
	case !o.snapshot:
		return "", r.lockSQL()
	}
	held := *r
	held.allowSnapshot, held.timeout = true, 0
	locks := (&Request{locks: r.locks, try: r.try, timeout: r.timeout, servers: r.servers}).withoutSnapshotCheck()
	// It waits for a transaction-level lock, which no failure can leave held. The session lock that follows is on the
	// same key, and so waits for nobody.
	return "BEGIN ISOLATION LEVEL READ COMMITTED; " + locks.lockSQL() + "; SELECT " + held.call("pg_advisory_lock") + held.from() + "; COMMIT; ",
		"SELECT " + held.call("pg_advisory_xact_lock") + held.from() + "; " + held.unlockSQL()
}

// Answers reports whether [Opening.Opened] reads the result.
func (o Opening) Answers() bool { return o.snapshot || o.request.try }

func (r *Request) withoutSnapshotCheck() *Request {
	r.allowSnapshot = true
	return r
}

// unlockSQL releases the session locks, and its number of rows says whether all were held.
func (r *Request) unlockSQL() string {
	return fmt.Sprintf("SELECT FROM generate_series(1, (SELECT bool_and(%s)::int%s))", r.unlockCall(), r.from())
}

// unlockCall is the call that releases the session lock of one key, or of the row u of from.
func (r *Request) unlockCall() string {
	unlock := func(shared bool) string {
		if shared {
			return "pg_advisory_unlock_shared"
		}
		return "pg_advisory_unlock"
	}
	switch {
	case len(r.locks) == 1:
		return unlock(r.locks[0].shared) + "(" + literal(r.locks[0]) + ")"
	case r.mixed():
		return fmt.Sprintf("CASE WHEN u.shared THEN %s ELSE %s END", r.callSpace(unlock(true)), r.callSpace(unlock(false)))
	default:
		return r.callSpace(unlock(r.locks[0].shared))
	}
}

// Opened reads the answer to the message. It returns nil if the transaction is open and holds the locks.
func (o Opening) Opened(ctx context.Context, result sql.Result, err error) error {
	if err != nil {
		return o.request.verdict(ctx, err)
	}
	if !o.Answers() {
		return nil
	}
	return o.request.answered(result)
}

// Clean reports whether a ROLLBACK is all that the connection needs after Opened returned err.
func (o Opening) Clean(err error) bool {
	if !o.snapshot {
		return true
	}
	for _, answer := range []error{ErrLockTimeout, ErrNotAcquired, ErrStandby} {
		if errors.Is(err, answer) {
			return true // the failure was in the first statement, which takes no session lock
		}
	}
	return false
}
