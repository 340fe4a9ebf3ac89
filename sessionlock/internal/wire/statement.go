package wire

import (
	"fmt"

	"github.com/gormlock/gormlock/internal/holder"
)

// Mode is how a lock is held.
type Mode uint8

// The modes, and their names for people.
const (
	Exclusive Mode = iota
	Shared
)

func (m Mode) String() string { return [...]string{"exclusive", "shared"}[m] }

// Statement is what a session can be asked. Those that give back come first, so that they go first.
type Statement uint8

// Unlock, Try and Rivals take a list of keys and exist once for each space and mode: see [Statement.For].
const (
	Unlock Statement = iota
	Try    Statement = 4
	Rivals Statement = 8  // asks which locks other sessions wait for, in any mode
	Beat   Statement = 12 // nothing: an answer proves that the session lives
	Wait   Statement = 13 // waits for one lock
	Issue  Statement = 14 // issues fencing tokens
	// IssueUnlocked leaves out the tokens whose row somebody has locked.
	IssueUnlocked Statement = 15
	UnlockAll     Statement = 16 // unlocks everything

	// Listed is how many statements take a list of keys. They are those below it.
	Listed = Beat
)

// For is the variant of Unlock, Try or Rivals for a lock.
func (s Statement) For(at holder.Place, m Mode) Statement {
	if at.Space == 2 {
		s += 2
	}
	return s + Statement(m)
}

// Space is that of the keys that a variant is for.
func (s Statement) Space() int16 { return int16(s%Try/2) + 1 }

// IsUnlock reports whether s is a variant of Unlock.
func (s Statement) IsUnlock() bool { return s < Try }

// IsTry reports whether s is a variant of Try.
func (s Statement) IsTry() bool { return s >= Try && s < Rivals }

// IsRivals reports whether s is a variant of Rivals.
func (s Statement) IsRivals() bool { return s >= Rivals && s < Beat }

// Undo is the Unlock that gives back what a Try takes.
func (s Statement) Undo() Statement { return s - Try }

// name is the name of the prepared statement, or "" for one that is not prepared.
func (s Statement) name() string { return names[s] }

var names = [...]string{
	"gormlock_unlock", "gormlock_unlock_shared", "gormlock_unlock_pair", "gormlock_unlock_pair_shared",
	"gormlock_try", "gormlock_try_shared", "gormlock_try_pair", "gormlock_try_pair_shared",
	Rivals: "gormlock_rivals", Rivals + 2: "gormlock_rivals_pair",
	Issue: "gormlock_issue", IssueUnlocked: "gormlock_issue_unlocked",
}

// sql returns the keys for which the function said no, so mostly nothing. It has no LIMIT and no join, so the function is
// called once for each key. The keys are a target list and not a function scan, which would store them first.
func (s Statement) sql() string {
	if s.IsRivals() {
		return fmt.Sprintf(rivalsSQL, s.Space())
	}
	return "SELECT k FROM (SELECT unnest($1::bigint[]) AS k) AS keys WHERE NOT " + call(functions[s/Try], s%Try, "k")
}

// rivalsSQL returns the keys for which another session waits in the server's queue.
const rivalsSQL = `SELECT k FROM (SELECT unnest($1::bigint[]) AS k) AS keys WHERE k IN (
	SELECT (classid::bigint << 32) | objid::bigint FROM pg_catalog.pg_locks
	WHERE locktype = 'advisory' AND NOT granted AND objsubid = %d
	AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()))`

// functions are the names of the functions of Unlock and Try, without their suffix.
var functions = [...]string{"pg_advisory_unlock", "pg_try_advisory_lock"}

// call calls a function with a key in the form of a variant.
func call(function string, variant Statement, key string) string {
	suffix := [...]string{"", "_shared"}[variant%2]
	if variant >= 2 {
		key = "(" + key + " >> 32)::int, ((" + key + " << 32) >> 32)::int"
	}
	return "pg_catalog." + function + suffix + "(" + key + ")"
}

// A wait is three statements in one transaction. They set the limit of the wait, take the transaction-level lock, and
// take the session-level lock. The last one never waits, because the transaction has the lock already. If a timeout comes
// between grant and answer, it hits the transaction-level lock, which ends with the transaction. A session-level lock
// would stay after the error.
const (
	limitName = "gormlock_limit"
	limitSQL  = "SELECT pg_catalog.set_config('lock_timeout', $1, true)"
)

func waitSQL(variant int) string {
	return "SELECT " + call("pg_advisory_xact_lock", Statement(variant), "$1::bigint")
}

// waitNames are the prepared statements of a wait, by variant of [Unlock].
var waitNames = [...][2]string{
	{"gormlock_wait", "gormlock_keep"},
	{"gormlock_wait_shared", "gormlock_keep_shared"},
	{"gormlock_wait_pair", "gormlock_keep_pair"},
	{"gormlock_wait_pair_shared", "gormlock_keep_pair_shared"},
}
