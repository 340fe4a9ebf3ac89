package lockrequest

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"sync/atomic"
)

// form is what the statements of single locks differ in. The keys, and the time to wait, are their arguments.
type form struct {
	pair, shared, try, bounded, allowSnapshot bool
}

// prefix begins the name of each statement. What follows is its form, for people who see it executed, and a digest of
// what it does: a statement of this name is this statement.
const prefix = "gormlock_"

// prepared is a statement that a session can keep.
type prepared struct{ name, definition string }

// Prepared is what may be sent in the place of [Opening.Around]: a statement, by its name and the text that prepares it,
// and the text that executes it. All are empty where there is none. It does not ask whether the server only looks like
// PostgreSQL: a plain text must have asked that in the same session.
func (o Opening) Prepared() (name, definition, execute string) {
	r := o.request
	if o.snapshot || len(r.locks) != 1 || len(r.servers) > 0 {
		return "", "", ""
	}
	l := r.locks[0]
	_, bigint := l.key.Int64()
	statement := form{pair: !bigint, shared: l.shared, try: r.try, bounded: r.timeout > 0, allowSnapshot: r.allowSnapshot}.statement()
	arguments := literal(l)
	if r.timeout > 0 {
		arguments += ", '" + strconv.FormatInt(r.budget(), 10) + "'"
	}
	return statement.name, statement.definition, "EXECUTE " + statement.name + "(" + arguments + ")"
}

// statements are those that were used, by the bits of their form.
var statements [1 << 5]atomic.Pointer[prepared]

func (f form) statement() *prepared {
	known := &statements[b2i(f.pair)|b2i(f.shared)<<1|b2i(f.try)<<2|b2i(f.bounded)<<3|b2i(f.allowSnapshot)<<4]
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
		text = answering("CASE " + answers(f.allowSnapshot, callMode("pg_try_advisory_xact_lock", f.shared)+"("+key+")"))
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
