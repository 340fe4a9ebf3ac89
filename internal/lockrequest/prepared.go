package lockrequest

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"sync/atomic"
)

// form distinguishes the prepared statements for single locks. Their arguments are the key and the time to wait.
type form struct {
	pair, shared, try, bounded, allowSnapshot bool

	saved bool // the lock is tried under a savepoint, and a setting keeps the answer
}

// prefix begins the name of each statement. It is followed by what the statement does, for people who see it in pg_stat_activity, and
// by a digest of its text. So two statements with the same name are the same.
const prefix = "gormlock_"

// prepared is a statement that a session can keep.
type prepared struct{ name, definition string }

// Prepared is a prepared statement to send in place of [Opening.Around]: its name, the text that prepares it,
// and the text that executes it. All are empty if there is none. The statement does not check whether the server only looks
// like PostgreSQL: an earlier plain text must have done so in the same session.
func (o Opening) Prepared() (name, definition, execute string) {
	if o.snapshot {
		return "", "", ""
	}
	statement, execute := o.request.prepared(false)
	return statement.name, statement.definition, execute
}

// prepared is the prepared statement of the request, and the text that executes it. Both are empty if there is none.
func (r *Request) prepared(saved bool) (statement prepared, execute string) {
	if len(r.locks) != 1 || len(r.servers) > 0 {
		return prepared{}, ""
	}
	l := r.locks[0]
	_, bigint := l.key.Int64()
	statement = *form{pair: !bigint, shared: l.shared, try: r.try, bounded: r.timeout > 0, allowSnapshot: r.allowSnapshot, saved: saved && r.try}.statement()
	arguments := literal(l)
	if r.timeout > 0 {
		arguments += ", '" + strconv.FormatInt(r.budget(), 10) + "'"
	}
	return statement, "EXECUTE " + statement.name + "(" + arguments + ")"
}

// statements are the statements used so far, by the bits of their form.
var statements [1 << 6]atomic.Pointer[prepared]

func (f form) statement() *prepared {
	known := &statements[b2i(f.pair)|b2i(f.shared)<<1|b2i(f.try)<<2|b2i(f.bounded)<<3|b2i(f.allowSnapshot)<<4|b2i(f.saved)<<5]
	if known.Load() == nil {
		known.CompareAndSwap(nil, f.write())
	}
	return known.Load()
}

func (f form) write() *prepared {
	types, key, wait := "bigint", "$1", "$2"
	if f.pair {
		types, key, wait = "int, int", "$1, $2", "$3"
	}
	var name, text string
	if f.try {
		name = callMode("try_advisory_xact_lock", f.shared)
		text = "CASE " + answers(f.allowSnapshot, callMode("pg_try_advisory_xact_lock", f.shared)+"("+key+")")
		if f.saved {
			text = keeping(text)
		} else {
			text = answering(text)
		}
	} else {
		name = callMode("advisory_xact_lock", f.shared)
		text = "CASE " + refusing(f.allowSnapshot) + " ELSE " + callMode("pg_advisory_xact_lock", f.shared) + "(" + key + ")::text END"
		if f.bounded {
			types += ", text"
			text = within(wait, text, "")
		} else {
			text = "SELECT " + text
		}
	}
	digest := sha256.Sum256([]byte(types + text))
	name = prefix + name + "_" + hex.EncodeToString(digest[:4])
	return &prepared{name, "PREPARE " + name + "(" + types + ") AS " + text}
}
