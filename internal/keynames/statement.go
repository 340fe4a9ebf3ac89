package keynames

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/internal/otherdb"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

const here = `locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

// lockedSQL selects the keys in the lock table, those with waiters first.
const lockedSQL = `SELECT objsubid::int2, (classid::int8 << 32) | objid::int8 FROM pg_locks WHERE ` + here + `
GROUP BY 1, 2 ORDER BY bool_and(granted) LIMIT 50000`

// writeSQL does not write rows that would stay the same, so that many programs with one hot key write it once. The order prevents deadlocks between
// two of them.
const writeSQL = `INSERT INTO gormlock_key_name AS t (space, id, name, scope, seen_at)
SELECT space, id, name, scope, now() FROM jsonb_to_recordset($1::jsonb) AS k(space int2, id int8, name text, scope text)
WHERE NOT EXISTS (SELECT FROM gormlock_key_name w
	WHERE w.space = k.space AND w.id = k.id AND (w.name, w.scope) = (k.name, k.scope) AND w.seen_at > now() - interval '1 hour')
ORDER BY space, id
ON CONFLICT (space, id) DO UPDATE SET name = excluded.name, scope = excluded.scope, seen_at = excluded.seen_at`

// sweepSQL deletes names that were not needed for a day and whose keys are not locked now.
const sweepSQL = `DELETE FROM gormlock_key_name WHERE (space, id) IN (
	SELECT space, id FROM gormlock_key_name t
	WHERE seen_at < now() - interval '1 day' AND (space, id) NOT IN (
		SELECT objsubid::int2, (classid::int8 << 32) | objid::int8 FROM pg_locks WHERE ` + here + `)
	LIMIT 1000 FOR UPDATE SKIP LOCKED)`

type row struct {
	Space int16  `json:"space"`
	ID    int64  `json:"id"`
	Name  string `json:"name"`
	Scope Scope  `json:"scope"`
}

// locked is the set of keys that are held or waited for.
func (r *Recorder) locked(ctx context.Context) (map[ID]bool, error) {
	if other := otherdb.Under(r.db); other != nil {
		return nil, other.Refusal(naming, nil)
	}
	rows, err := r.db.QueryContext(ctx, lockedSQL)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	locked := map[ID]bool{}
	for rows.Next() {
		var id ID
		if err := rows.Scan(&id.Space, &id.ID); err != nil {
			return nil, err
		}
		locked[id] = true
	}
	return locked, rows.Err()
}

func (r *Recorder) write(ctx context.Context, names []row) error {
	if len(names) == 0 {
		return nil
	}
	text, err := json.Marshal(names)
	if err != nil {
		return err
	}
	_, err = r.db.ExecContext(ctx, writeSQL, string(text))
	return err
}

func (r *Recorder) sweep(ctx context.Context) error {
	if time.Since(r.swept) < sweepEvery {
		return nil
	}
	if _, err := r.db.ExecContext(ctx, sweepSQL); err != nil {
		return err
	}
	r.swept = time.Now()
	return nil
}

// naming says for people what a recorder does.
const naming = "names of keys are not written to " + Table

// explain says what was not done, with the cure if there is one.
func explain(err error) error {
	if errors.Is(err, otherdb.ErrNotPostgres) {
		return err
	}
	if other := otherdb.Said(err); other != nil {
		return other.Refusal(naming, err)
	}
	if sqlstate.Is(err, sqlstate.UndefinedTable) {
		err = fmt.Errorf("%w (inspect.Migrate creates the table)", err)
	}
	return fmt.Errorf("gormlock: "+naming+": %w", err)
}
