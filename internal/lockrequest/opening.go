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
// A failure leaves the connection inside an aborted transaction, or outside of one. A ROLLBACK puts it right if
// [Opening.Clean] says so; otherwise the session may still hold a lock, and only closing it is safe.
type Opening struct {
	request  *Request
	snapshot bool
}

// Opening is how a transaction with the request's locks begins. With snapshot, for isolation levels that keep one
// snapshot, the locks are held by the session before the transaction begins and handed to it: its snapshot is then
// younger than its locks.
func (r *Request) Opening(snapshot bool) Opening { return Opening{r, snapshot} }

// Around is the texts to send, as one message without arguments, around the statement that begins the transaction:
// nothing or statements that end in a semicolon and a space, and what comes after a semicolon.
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
	// The wait is for a transaction lock, which no failure leaves behind; the session lock that follows is on a
	// key already held, and waits for nobody.
	return "BEGIN ISOLATION LEVEL READ COMMITTED; " + locks.lockSQL() + "; SELECT " + held.call("pg_advisory_lock") + held.from() + "; COMMIT; ",
		"SELECT " + held.call("pg_advisory_xact_lock") + held.from() + "; " + held.unlockSQL()
}

// Answers reports whether [Opening.Opened] reads the result.
func (o Opening) Answers() bool { return o.snapshot || o.request.try }

func (r *Request) withoutSnapshotCheck() *Request {
	r.allowSnapshot = true
	return r
}

// unlockSQL gives the session locks up and answers whether all were held.
func (r *Request) unlockSQL() string {
	return fmt.Sprintf("SELECT FROM generate_series(1, (SELECT bool_and(%s)::int%s))", r.unlockCall(), r.from())
}

// unlockCall is the call that gives up the session lock of one key, or of the row u of from.
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

// Opened is what the answer to the message means: nil when the transaction is open and holds the locks.
func (o Opening) Opened(ctx context.Context, result sql.Result, err error) error {
	if err != nil {
		return o.request.verdict(ctx, err)
	}
	if !o.Answers() {
		return nil
	}
	return o.request.answered(result)
}

// Clean reports whether a ROLLBACK is all that the connection needs after Opened answered err.
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
