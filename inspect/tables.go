package inspect

import (
	"context"
	"database/sql"
	"encoding/json"
)

// readTables reads what gormlock keeps in tables. One that cannot be read hides what is
// in it and nothing else.
func (r *reader) readTables(ctx context.Context) {
	for _, t := range []struct {
		name string
		is   bool
		read func(context.Context, *sql.Tx) error
	}{
		{"gormlock_lease", r.facts.lease, r.readLeases},
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

// leasesSQL is the leases that are held, and those that ran out without a release in the
// last hour: their holders may not know. How many there are is in each row.
const leasesSQL = `
SELECT space, id, name, owner, acquired_at, expires_at, expires_at <= now(), count(*) OVER ()
FROM gormlock_lease WHERE holder <> '' AND expires_at > now() - interval '1 hour'
ORDER BY expires_at <= now(), acquired_at LIMIT $1`

func (r *reader) readLeases(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, leasesSQL, r.config.limit)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var l Lease
		var total int
		if err := rows.Scan(&l.Space, &l.ID, &l.Key, &l.Owner, &l.Acquired, &l.Expires, &l.Expired, &total); err != nil {
			return err
		}
		r.view.Totals.Leases = total
		r.view.Leases = append(r.view.Leases, l)
		r.learn(lockID{l.Space, l.ID}, l.Key, "lease")
	}
	return rows.Err()
}

const tokensSQL = `
SELECT t.space, t.id, t.name, t.token FROM gormlock_fence t
WHERE (t.space, t.id) IN (SELECT space, id FROM jsonb_to_recordset($1::jsonb) AS k(space int2, id int8))`

func (r *reader) readTokens(ctx context.Context, tx *sql.Tx) error {
	tokens := map[lockID]int64{}
	err := r.readByKey(ctx, tx, tokensSQL, func(rows *sql.Rows) error {
		var id lockID
		var text string
		var token int64
		err := rows.Scan(&id.space, &id.id, &text, &token)
		tokens[id] = token
		r.learn(id, text, "fence")
		return err
	})
	for i := range r.view.Locks {
		if l := &r.view.Locks[i]; l.Kind == Advisory {
			l.Token = tokens[lockID{l.Space, l.ID}]
		}
	}
	for i := range r.view.Leases {
		l := &r.view.Leases[i]
		l.Token = tokens[lockID{l.Space, l.ID}]
	}
	return err
}

const namesSQL = `
SELECT t.space, t.id, t.name, t.scope FROM gormlock_key_name t
WHERE (t.space, t.id) IN (SELECT space, id FROM jsonb_to_recordset($1::jsonb) AS k(space int2, id int8))`

func (r *reader) readNames(ctx context.Context, tx *sql.Tx) error {
	return r.readByKey(ctx, tx, namesSQL, func(rows *sql.Rows) error {
		var id lockID
		var text string
		var scope Scope
		err := rows.Scan(&id.space, &id.id, &text, &scope)
		r.names[id] = name{text, "names", scope}
		return err
	})
}

// readByKey asks for the rows of the keys in the view.
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

// learn keeps a name; what is read later counts more.
func (r *reader) learn(id lockID, text, source string) {
	r.names[id] = name{text, source, ""}
}
