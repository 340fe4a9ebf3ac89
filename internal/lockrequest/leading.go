package lockrequest

import (
	"context"
	"strings"
)

// Leading is one text, for a driver that hands on nothing of a BEGIN but its error. The locks come before the BEGIN: the
// server runs a message of several statements as one transaction, and BEGIN makes that the caller's. A refusal ends
// it, so that the connection is outside of any transaction again and as good as before. [Request.Verdict] reads the error.
//
// The level is written as in SQL, "" is the database's default. With snapshot, for levels that keep one snapshot, see
// [Request.Opening]: an error may then leave the connection inside a transaction, and with a lock of its session. Only
// closing it is safe there.
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

// Verdict is what err means, with which the server or the driver answered to the request's text.
func (r *Request) Verdict(ctx context.Context, err error) error { return r.verdict(ctx, err) }
