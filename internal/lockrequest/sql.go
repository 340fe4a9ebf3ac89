package lockrequest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gormlock/gormlock/internal/lookalike"
)

// All statements are texts without arguments: keys and durations are written out as numbers. A driver sends such a text as
// one message. So several statements are one round trip, and nothing has to be prepared first.

// The answers of answerSQL, as a number of rows: of a text with several statements, database/sql returns only
// the number of rows of the last one.
const (
	answerNotAcquired = iota
	answerHeld
	answerSnapshot
	answerStandby
)

// answerSQL tries the locks and answers without an error, so a busy Try does not fill the server's log.
func (r *Request) answerSQL() string { return answering(r.answer()) }

func answering(answer string) string { return "SELECT FROM generate_series(1, " + answer + ")" }

// keeping keeps an answer in a setting of the transaction.
func keeping(answer string) string {
	return "SELECT set_config('gormlock.answer', (" + answer + ")::text, true)"
}

func (r *Request) answer() string {
	tried := r.call("pg_try_advisory_xact_lock")
	if len(r.locks) > 1 {
		tried = "(SELECT bool_and(" + tried + ")" + r.from() + ")"
	}
	return "CASE WHEN " + lookalike.Condition(r.servers) + " THEN " + lookalike.Raise + " " + answers(r.allowSnapshot, tried)
}

// answers is the rest of a CASE with the answers. tried is the condition that tries the locks.
func answers(allowSnapshot bool, tried string) string {
	snapshot := ""
	if !allowSnapshot {
		snapshot = " WHEN " + oldSnapshot + " THEN " + strconv.Itoa(answerSnapshot)
	}
	return fmt.Sprintf("WHEN pg_is_in_recovery() THEN %d%s WHEN %s THEN %d ELSE %d END", answerStandby, snapshot, tried, answerHeld, answerNotAcquired)
}

// oldSnapshot is the condition that the transaction keeps one snapshot.
const oldSnapshot = "current_setting('transaction_isolation') NOT LIKE 'read %'"

// lockSQL takes the locks or fails.
func (r *Request) lockSQL() string {
	return r.statement(r.guarded(r.taking()))
}

// taking is the expression, of type text, that takes one lock or fails.
func (r *Request) taking() string {
	if !r.try {
		return r.call("pg_advisory_xact_lock") + "::text"
	}
	place := "1"
	if len(r.locks) > 1 {
		place = "u.place"
	}
	// format instead of ||: the planner would compute || of constants in advance, and fail even if the lock is granted.
	return fmt.Sprintf("CASE WHEN %s THEN '' ELSE format('%s%%s', %s)::int::text END", r.call("pg_try_advisory_xact_lock"), refusedKey, place)
}

// guarded is the expression after checks, which fail before the lock is asked for if it would not protect.
func (r *Request) guarded(expression string) string {
	return "CASE WHEN " + lookalike.Condition(r.servers) + " THEN " + lookalike.Raise + "::text " + refusing(r.allowSnapshot) + " ELSE " + expression + " END"
}

// refusing is a branch of a CASE that fails, on a standby and with an old snapshot.
func refusing(allowSnapshot bool) string {
	refused := "pg_is_in_recovery()"
	if !allowSnapshot {
		refused += " OR " + oldSnapshot
	}
	return "WHEN " + refused + " THEN ('" + refusedIsolation + "' || current_setting('transaction_isolation'))::int::text"
}

// statement evaluates the expression for each lock in order, within the timeout if there is one.
func (r *Request) statement(expression string) string {
	if r.timeout == 0 {
		return "SELECT " + expression + r.from()
	}
	// The budget shrinks with every key: statement_timestamp is when the whole text arrived.
	remaining := fmt.Sprintf("'%d'", r.budget())
	if len(r.locks) > 1 {
		remaining = fmt.Sprintf("greatest(1, ceil(%d - 1000 * extract(epoch FROM clock_timestamp() - statement_timestamp())))::int::text", r.budget())
	}
	return within(remaining, expression, strings.Replace(r.from(), " FROM ", ", ", 1))
}

// budget is the timeout in milliseconds.
func (r *Request) budget() int64 { return (r.timeout + time.Millisecond - 1).Milliseconds() }

// within evaluates the expression with a lock_timeout, for each row of joined. It restores the setting itself, because a
// setting outlasts the release of its savepoint.
func within(timeout, expression, joined string) string {
	return "WITH before AS MATERIALIZED (SELECT current_setting('lock_timeout') AS lock_timeout)" +
		", taken AS MATERIALIZED (SELECT set_config('lock_timeout', " + timeout + ", true), " + expression + " FROM before" + joined + ")" +
		" SELECT set_config('lock_timeout', before.lock_timeout, true) FROM before, (SELECT count(*) FROM taken) AS locks"
}

// from is the FROM clause that returns the locks as rows u in their order, "" for a single lock.
func (r *Request) from() string {
	if len(r.locks) == 1 {
		return ""
	}
	var id, hi, lo, shared strings.Builder
	for i, l := range r.locks {
		if i > 0 {
			for _, b := range []*strings.Builder{&id, &hi, &lo, &shared} {
				b.WriteByte(',')
			}
		}
		if bigint, ok := l.key.Int64(); ok {
			id.WriteString(strconv.FormatInt(bigint, 10))
			hi.WriteString("NULL")
			lo.WriteString("NULL")
		} else {
			h, l, _ := l.key.Pair()
			id.WriteString("NULL")
			hi.WriteString(strconv.Itoa(int(h)))
			lo.WriteString(strconv.Itoa(int(l)))
		}
		shared.WriteByte("ft"[b2i(l.shared)])
	}
	arrays := fmt.Sprintf("'{%s}'::int8[]", &id)
	columns := "id"
	if _, _, pairs := r.locks[len(r.locks)-1].key.Pair(); pairs {
		arrays += fmt.Sprintf(", '{%s}'::int4[], '{%s}'::int4[]", &hi, &lo)
		columns += ", hi, lo"
	}
	if r.mixed() {
		arrays += fmt.Sprintf(", '{%s}'::bool[]", &shared)
		columns += ", shared"
	}
	return fmt.Sprintf(" FROM unnest(%s) WITH ORDINALITY AS u(%s, place)", arrays, columns)
}

// call is the call of an advisory lock function on one lock, or on the row u of from.
func (r *Request) call(function string) string {
	if len(r.locks) == 1 {
		return callMode(function, r.locks[0].shared) + "(" + literal(r.locks[0]) + ")"
	}
	if !r.mixed() {
		return r.callSpace(callMode(function, r.locks[0].shared))
	}
	return fmt.Sprintf("CASE WHEN u.shared THEN %s ELSE %s END", r.callSpace(callMode(function, true)), r.callSpace(function))
}

// callSpace picks the key space. Bigints come before pairs in the order, so the last lock shows whether there are pairs.
func (r *Request) callSpace(function string) string {
	_, _, pairs := r.locks[len(r.locks)-1].key.Pair()
	_, bigints := r.locks[0].key.Int64()
	switch {
	case !pairs:
		return function + "(u.id)"
	case !bigints:
		return function + "(u.hi, u.lo)"
	default:
		return fmt.Sprintf("CASE WHEN u.id IS NULL THEN %[1]s(u.hi, u.lo) ELSE %[1]s(u.id) END", function)
	}
}

func callMode(function string, shared bool) string {
	if shared {
		return function + "_shared"
	}
	return function
}

func literal(l lock) string {
	if id, ok := l.key.Int64(); ok {
		return strconv.FormatInt(id, 10)
	}
	hi, lo, _ := l.key.Pair()
	return fmt.Sprintf("%d, %d", hi, lo)
}

// mixed reports whether some locks are shared and some are not.
func (r *Request) mixed() bool {
	for _, l := range r.locks {
		if l.shared != r.locks[0].shared {
			return true
		}
	}
	return false
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
