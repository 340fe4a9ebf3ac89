package lockrequest

import (
	"context"
	"strings"
)

// Leading is a text for a driver that returns nothing of a BEGIN but its error. The locks come before the BEGIN: the
// server runs a message of several statements as one transaction, and BEGIN turns that into the caller's. A refusal ends
// it, so the connection is outside of any transaction again and as usable as before. [Request.Verdict] reads the error.
//
// level is written as in SQL; "" is the database's default. snapshot is for levels that keep one snapshot: see
// [Request.Opening]. With it, an error may leave the connection inside a transaction, and with a lock of its session. Then
// only closing the connection is safe.
func (r *Request) Leading(level string, snapshot bool) string {
	set, begin := "", "BEGIN"
	if level != "" {
		begin += " ISOLATION LEVEL " + strings.ToUpper(level)
		set = "SET TRANSACTION ISOLATION LEVEL " + strings.ToUpper(level) + "; "
	}
	if !snapshot {
		return set + r.lockSQL() + "; " + begin
	}
	held := *r
	held.allowSnapshot, held.timeout = true, 0
	given := "SELECT CASE WHEN bool_and(" + r.unlockCall() + ") THEN '' ELSE format('" + refusedKey + "%s', 1)::int::text END" + r.from()
	return "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; " + r.lockSQL() + "; BEGIN; SELECT " + held.call("pg_advisory_lock") + held.from() + "; COMMIT; " +
		begin + "; SELECT " + held.call("pg_advisory_xact_lock") + held.from() + "; " + given
}

// Verdict returns the error that the caller gets if the server or the driver answers the request's text with err.
func (r *Request) Verdict(ctx context.Context, err error) error { return r.verdict(ctx, err) }
