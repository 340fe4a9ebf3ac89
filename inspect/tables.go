package inspect

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"

	"github.com/gormlock/gormlock/internal/lockid"
)

// readTables reads gormlock's own tables. If one cannot be read, only its content is missing.
func (r *reader) readTables(ctx context.Context) {
	for _, t := range []struct {
		name string
		is   bool
		read func(context.Context, *sql.Tx) error
	}{
		{"gormlock_lease", r.facts.lease, r.readLeases},
		{"gormlock_schedule", r.facts.schedule, r.readSchedules},
		{"gormlock_fence", r.facts.fence, r.readTokens},
		{"gormlock_key_name", r.facts.names, r.readNames},
	} {
		if !t.is {
			continue
		}
		if err := r.within(ctx, t.read); err != nil {
			r.unseen("the table %s: %v", t.name, err)
		}
	}
}

// leasesSQL returns the leases that are held, and those that ran out without a release in the
// last hour: their holders may not know. Each row has the number of all. For a key with
// slots it returns the slots: the row of the key itself only says, in its holder, how many there can be.
const leasesSQL = `
SELECT l.space, l.id, l.name, l.owner, l.acquired_at, l.expires_at, l.expires_at <= now(), l.holder LIKE 'leader:%',
	greatest(l.space / 16 - 1, 0), CASE WHEN l.space / 16 > 0 AND k.holder LIKE 'slots %' THEN split_part(k.holder, ' ', 2)::integer ELSE 0 END,
	count(*) OVER ()
FROM gormlock_lease l LEFT JOIN gormlock_lease k ON l.space / 16 > 0 AND k.space = l.space % 16 AND k.id = l.id
WHERE l.holder <> '' AND l.holder NOT LIKE 'slots %' AND l.expires_at > now() - interval '1 hour'
ORDER BY l.expires_at <= now(), l.acquired_at LIMIT $1`

func (r *reader) readLeases(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, leasesSQL, r.config.limit)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var l Lease
		var total int
		if err := rows.Scan(&l.Space, &l.ID, &l.Key, &l.Owner, &l.Acquired, &l.Expires, &l.Expired, &l.Leader, &l.Slot, &l.Slots, &total); err != nil {
			return err
		}
		r.view.Totals.Leases = total
		r.view.Leases = append(r.view.Leases, l)
		r.learn(lockid.ID{Space: l.Space, ID: l.ID}, l.Key, "lease")
	}
	return rows.Err()
}

// schedulesSQL returns the schedules that have a row. It does not know which of them no program runs any more. Schedules that fail or are late
// come first. A run is on while it holds the lease of its key.
const schedulesSQL = `
SELECT s.space, s.id, s.name, s.owner, s.done_at, s.next_at, s.tick_at, s.attempts, s.retry_at, s.failures, coalesce(s.problem, ''), {running},
	count(*) OVER ()
FROM gormlock_schedule s
ORDER BY s.failures = 0, s.tick_at IS NULL, coalesce(s.tick_at, s.next_at), s.name LIMIT $1`

func (r *reader) readSchedules(ctx context.Context, tx *sql.Tx) error {
	running := "s.tick_at IS NOT NULL AND s.retry_at IS NULL"
	if r.facts.lease {
		running += " AND EXISTS (SELECT FROM gormlock_lease l WHERE l.space = s.space AND l.id = s.id AND l.holder LIKE 'tick:%' AND l.expires_at > now())"
	}
	rows, err := tx.QueryContext(ctx, strings.Replace(schedulesSQL, "{running}", running, 1), r.config.limit)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var s Schedule
		var last, next, tick, retry sql.NullTime
		if err := rows.Scan(&s.Space, &s.ID, &s.Key, &s.Owner, &last, &next, &tick, &s.Attempts, &retry, &s.Failures, &s.Problem, &s.Running,
			&r.view.Totals.Schedules); err != nil {
			return err
		}
		s.Last, s.Next, s.Tick, s.Retry = last.Time, next.Time, tick.Time, retry.Time
		r.view.Schedules = append(r.view.Schedules, s)
		r.learn(lockid.ID{Space: s.Space, ID: s.ID}, s.Key, "schedule")
	}
	return rows.Err()
}

const tokensSQL = `
SELECT t.space, t.id, t.name, t.token FROM gormlock_fence t
WHERE (t.space, t.id) IN (SELECT space, id FROM jsonb_to_recordset($1::jsonb) AS k(space int2, id int8))`

func (r *reader) readTokens(ctx context.Context, tx *sql.Tx) error {
	tokens := map[lockid.ID]int64{}
	err := r.readByKey(ctx, tx, tokensSQL, func(rows *sql.Rows) error {
		var id lockid.ID
		var text string
		var token int64
		err := rows.Scan(&id.Space, &id.ID, &text, &token)
		tokens[id] = token
		r.learn(id, text, "fence")
		return err
	})
	for i := range r.view.Locks {
		if l := &r.view.Locks[i]; l.Kind == Advisory {
			l.Token = tokens[lockid.ID{Space: l.Space, ID: l.ID}]
		}
	}
	for i := range r.view.Leases {
		l := &r.view.Leases[i]
		l.Token = tokens[lockid.ID{Space: l.Space, ID: l.ID}]
	}
	return err
}

const namesSQL = `
SELECT t.space, t.id, t.name, t.scope FROM gormlock_key_name t
WHERE (t.space, t.id) IN (SELECT space, id FROM jsonb_to_recordset($1::jsonb) AS k(space int2, id int8))`

func (r *reader) readNames(ctx context.Context, tx *sql.Tx) error {
	return r.readByKey(ctx, tx, namesSQL, func(rows *sql.Rows) error {
		var id lockid.ID
		var text string
		var scope Scope
		err := rows.Scan(&id.Space, &id.ID, &text, &scope)
		r.names[id] = name{text, "names", scope}
		return err
	})
}

// readByKey reads the rows of the keys in the view.
func (r *reader) readByKey(ctx context.Context, tx *sql.Tx, query string, read func(*sql.Rows) error) error {
	type key struct {
		Space int16 `json:"space"`
		ID    int64 `json:"id"`
	}
	list := []key{}
	for _, l := range r.view.Locks {
		if l.Kind == Advisory {
			list = append(list, key{l.Space, l.ID})
		}
	}
	for _, l := range r.view.Leases {
		list = append(list, key{l.Space, l.ID})
	}
	for _, statement := range r.own {
		for _, k := range statement.Keys() {
			if id, ok := lockid.Of(k); ok {
				list = append(list, key{id.Space, id.ID})
			}
		}
	}
	keys, err := json.Marshal(list)
	if err != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, query, string(keys))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// learn keeps a name. Later sources replace earlier ones.
func (r *reader) learn(id lockid.ID, text, source string) {
	r.names[id] = name{text, source, ""}
}
