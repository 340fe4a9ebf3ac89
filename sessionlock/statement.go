package sessionlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/fence"
)

// mode is how a lock is held.
type mode uint8

const (
	exclusive mode = iota
	shared
)

func (m mode) String() string { return [...]string{"exclusive", "shared"}[m] }

// lockID is a lock as the server knows it: two keys with one lockID are one lock.
type lockID struct {
	pair bool
	id   int64
}

// number is l as pg_locks has it, in objsubid and in classid and objid.
func (l lockID) number() (space int16, id int64) {
	if l.pair {
		return 2, l.id
	}
	return 1, l.id
}

// statement is what a session can be asked. Those that give back come first, so that
// they go first.
type statement uint8

const (
	unlock statement = iota // and one for each space and mode: see forLock
	try    statement = 4
	wanted statement = 8  // asks for which locks another session waits; for each space
	beat   statement = 12 // nothing: an answer proves that the session lives
	slice  statement = 13 // waits for one lock
	issue  statement = 14
	// issueUnlocked leaves out the tokens whose row somebody has locked.
	issueUnlocked statement = 15
	unlockAll     statement = 16 // gives back everything
)

// forLock is the variant of unlock or try for a lock.
func (s statement) forLock(id lockID, m mode) statement {
	if id.pair {
		s += 2
	}
	return s + statement(m)
}

func (s statement) isUnlock() bool { return s < try }
func (s statement) isTry() bool    { return s >= try && s < wanted }
func (s statement) isWanted() bool { return s >= wanted && s < beat }

// name is that of the prepared statement.
func (s statement) name() string { return names[s] }

var names = [...]string{
	"gormlock_unlock", "gormlock_unlock_shared", "gormlock_unlock_pair", "gormlock_unlock_pair_shared",
	"gormlock_try", "gormlock_try_shared", "gormlock_try_pair", "gormlock_try_pair_shared",
	wanted: "gormlock_wanted", wanted + 2: "gormlock_wanted_pair",
	issue: "gormlock_issue", issueUnlocked: "gormlock_issue_unlocked",
}

// sql answers with the keys for which the function said no: mostly with nothing. There
// is no LIMIT and no join, so the function is called once for each key. The keys are a
// target list, not a function scan, which would store them first.
func (s statement) sql() string {
	if s.isWanted() {
		return fmt.Sprintf(wantedSQL, (s-wanted)/2+1)
	}
	return "SELECT k FROM (SELECT unnest($1::bigint[]) AS k) AS keys WHERE NOT " + call(functions[s/try], s%try, "k")
}

// wantedSQL answers with the keys that another session waits for in the server's queue.
const wantedSQL = `SELECT k FROM (SELECT unnest($1::bigint[]) AS k) AS keys WHERE k IN (
	SELECT (classid::bigint << 32) | objid::bigint FROM pg_catalog.pg_locks
	WHERE locktype = 'advisory' AND NOT granted AND objsubid = %d
	AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()))`

// functions are those of unlock and try, without their suffix.
var functions = [...]string{"pg_advisory_unlock", "pg_try_advisory_lock"}

// call calls a function with a key in the form of a variant.
func call(function string, variant statement, key string) string {
	suffix := [...]string{"", "_shared"}[variant%2]
	if variant >= 2 {
		key = "(" + key + " >> 32)::int, ((" + key + " << 32) >> 32)::int"
	}
	return "pg_catalog." + function + suffix + "(" + key + ")"
}

// A wait is three statements of one transaction: the limit of the wait, the
// transaction's lock, the session's lock. The last is asked for when the transaction has
// the lock already, so it never waits: a timeout that hits between grant and answer,
// which leaves a session lock held after an error, hits the transaction's lock, which
// goes with it.
const (
	limitName = "gormlock_limit"
	limitSQL  = "SELECT pg_catalog.set_config('lock_timeout', $1, true)"
)

// waitNames are the prepared statements of a wait, by variant.
var waitNames = [...][2]string{
	{"gormlock_wait", "gormlock_keep"},
	{"gormlock_wait_shared", "gormlock_keep_shared"},
	{"gormlock_wait_pair", "gormlock_keep_pair"},
	{"gormlock_wait_pair_shared", "gormlock_keep_pair_shared"},
}

// prepare makes the statements of a role known to the session, in one round trip.
func prepare(ctx context.Context, conn *pgconn.PgConn, r role) error {
	p := conn.StartPipeline(ctx)
	if r == numbers {
		p.SendPrepare(issue.name(), fence.Batch, nil)
		p.SendPrepare(issueUnlocked.name(), fence.BatchUnlocked, nil)
	} else {
		for s := unlock; s < beat; s++ {
			if s.name() != "" {
				p.SendPrepare(s.name(), s.sql(), nil)
			}
		}
	}
	if r == waits {
		p.SendPrepare(limitName, limitSQL, nil)
		for variant, names := range waitNames {
			p.SendPrepare(names[0], "SELECT "+call("pg_advisory_xact_lock", statement(variant), "$1::bigint"), nil)
			p.SendPrepare(names[1], "SELECT "+call("pg_advisory_lock", statement(variant), "$1::bigint"), nil)
		}
	}
	err := p.Sync()
	for err == nil {
		var result any
		if result, err = p.GetResults(); result == nil {
			break
		}
		if _, synced := result.(*pgconn.PipelineSync); synced {
			break
		}
	}
	if err = errors.Join(err, p.Close()); err != nil {
		return fmt.Errorf("gormlock: prepare the session: %w", err)
	}
	return nil
}
