package work

import (
	"context"
	"fmt"

	"github.com/gormlock/gormlock/internal/pgarray"
)

// rows is the table of jobs, as this process claims them.
type rows struct {
	db    fresh
	t     *table
	owner string
}

// mine joins the rows of jobs as this process claimed them, and not as of a later claim; o has id and attempt. Rows that
// somebody has locked are left for later. The server finds each row by its key, whatever it believes about the table: by
// its statistics hardly a row has this ClaimedBy, or this state, and a plan that begins with either reads all of them.
const mine = `, LATERAL (SELECT {ID} AS id FROM {table} WHERE {ID} = o.id AND {Attempts} = o.attempt AND {ClaimedBy} = $3
	AND {State} || '' = 'running' FOR NO KEY UPDATE SKIP LOCKED) AS t`

// ids runs a statement that returns IDs.
func (r rows) ids(ctx context.Context, text string, args ...any) (map[int64]bool, error) {
	var id int64
	found := map[int64]bool{}
	err := r.db.each(ctx, r.t.sql(text), args, []any{&id}, func() { found[id] = true })
	return found, err
}

// states returns the states of the jobs that this process still has.
func (r rows) states(ctx context.Context, list []*item) (map[int64]string, error) {
	ids, attempts := arrays(list)
	var id int64
	var state string
	found := map[int64]string{}
	err := r.db.each(ctx, r.t.sql(`SELECT o.id, t.state FROM unnest($1::bigint[], $2::int[]) AS o(id, attempt), LATERAL (
		SELECT {State} AS state FROM {table} WHERE {ID} = o.id AND {Attempts} = o.attempt AND {ClaimedBy} = $3 OFFSET 0) AS t`), []any{ids, attempts, r.owner},
		[]any{&id, &state}, func() { found[id] = state })
	if err != nil {
		return nil, fmt.Errorf("read the states of jobs: %w", err)
	}
	return found, nil
}

// arrays returns the IDs of jobs and their attempts.
func arrays(list []*item) (ids, attempts string) {
	var of, at pgarray.Array
	for _, it := range list {
		of.Int(it.id)
		at.Int(int64(it.attempt))
	}
	return of.String(), at.String()
}

// hear runs a statement that makes jobs ready.
func (r rows) hear(ctx context.Context, heard hints, text string, args ...any) (n int, err error) {
	var id int64
	var l level
	err = r.db.each(ctx, r.t.sql(text), args, []any{&id, &l.queue, &l.priority}, func() {
		heard.add(l, id, false)
		n++
	})
	return n, err
}
