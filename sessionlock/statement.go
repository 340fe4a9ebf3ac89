package sessionlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/fence"
)

// mode is how a lock is held.
type mode uint8

const (
	exclusive mode = iota
	shared
)

// lockID is a lock as the server knows it: two keys with one lockID are one lock.
type lockID struct {
	pair bool
	id   int64
}

// statement is what a session can be asked. Those that give back come first, so that
// they go first.
type statement uint8

const (
	unlock    statement = iota // and one for each space and mode: see forLock
	try       statement = 4
	beat      statement = 8 // nothing: an answer proves that the session lives
	slice     statement = 9 // waits for one lock
	issue     statement = 10
	unlockAll statement = 11 // gives back everything
)

// forLock is the variant of unlock or try for a lock.
func (s statement) forLock(id lockID, m mode) statement {
	if id.pair {
		s += 2
	}
	return s + statement(m)
}

func (s statement) isUnlock() bool { return s < try }
func (s statement) isTry() bool    { return s >= try && s < beat }

// name is that of the prepared statement.
func (s statement) name() string { return names[s] }

var names = [...]string{
	"gormlock_unlock", "gormlock_unlock_shared", "gormlock_unlock_pair", "gormlock_unlock_pair_shared",
	"gormlock_try", "gormlock_try_shared", "gormlock_try_pair", "gormlock_try_pair_shared",
	issue: "gormlock_issue",
}

var functions = [2][2]string{
	{"pg_advisory_unlock", "pg_advisory_unlock_shared"},
	{"pg_try_advisory_lock", "pg_try_advisory_lock_shared"},
}

// sql answers with the keys for which the function said no: mostly with nothing. The
// scan has no LIMIT and no join, so it calls the function once for each key.
func (s statement) sql() string {
	function := functions[s/try][s%2]
	if s%try < 2 {
		return "SELECT k FROM unnest($1::bigint[]) k WHERE NOT pg_catalog." + function + "(k)"
	}
	return "SELECT k FROM unnest($1::bigint[]) k WHERE NOT pg_catalog." + function + "((k >> 32)::int, ((k << 32) >> 32)::int)"
}

// prepare makes the statements of a role known to the session, in one round trip.
func prepare(ctx context.Context, conn *pgconn.PgConn, r role) error {
	p := conn.StartPipeline(ctx)
	if r == numbers {
		p.SendPrepare(issue.name(), fence.Batch, nil)
	} else {
		for s := unlock; s < beat; s++ {
			p.SendPrepare(s.name(), s.sql(), nil)
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

// sliceSQL is a wait in three statements of one transaction. The session lock is asked
// for when the transaction has the lock already, so it never waits: a timeout that
// hits between grant and answer, which leaves a session lock held after an error, hits
// the transaction's lock, which goes with it.
func sliceSQL(id lockID, m mode, d time.Duration) [3]string {
	suffix := [2]string{"", "_shared"}[m]
	args := fmt.Sprint(id.id)
	if id.pair {
		args = fmt.Sprintf("%d, %d", int32(id.id>>32), int32(id.id))
	}
	return [3]string{
		fmt.Sprintf("SELECT pg_catalog.set_config('lock_timeout', '%dms', true)", max(1, d.Milliseconds())),
		fmt.Sprintf("SELECT pg_catalog.pg_advisory_xact_lock%s(%s)", suffix, args),
		fmt.Sprintf("SELECT pg_catalog.pg_advisory_lock%s(%s)", suffix, args),
	}
}
