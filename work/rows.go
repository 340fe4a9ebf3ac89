package work

import (
	"context"
	"fmt"

	"github.com/gormlock/gormlock/internal/pgarray"
)

// rows is the table of jobs, with statements about the claims of this process.
type rows struct {
	db    fresh
	t     *table
	owner string
}

// mine joins the rows of jobs that still have the claim of this process, and not a later one. o has the columns id and claim. It does not use
// Attempts, because a handler may change that. Rows that somebody has locked are left for later. The form of the query makes the server find each
// row by its key. By its statistics hardly a row has this ClaimedBy, or this state, and a plan that begins with either reads all such rows.
const mine = `, LATERAL (SELECT {ID} AS id FROM {table} AS j WHERE {ID} = o.id AND {ClaimedBy} = o.claim
	AND {State} || '' = 'running' FOR NO KEY UPDATE SKIP LOCKED) AS t`

// list returns the IDs that a query returns.
func (r rows) list(ctx context.Context, text string, args ...any) (ids []int64, err error) {
	var id int64
	err = r.db.each(ctx, r.t.sql(text), args, []any{&id}, func() { ids = append(ids, id) })
	return ids, err
}

// elsewhere is the state of a job that no longer belongs to this claim.
const elsewhere = "elsewhere"

// states returns the states of those jobs whose row exists.
func (r rows) states(ctx context.Context, list []*item) (map[int64]string, error) {
	ids, claims := arrays(list)
	var id int64
	var state string
	found := map[int64]string{}
	err := r.db.each(ctx, r.t.sql(`SELECT o.id, t.state FROM unnest($1::bigint[], $2::text[]) AS o(id, claim), LATERAL (
		SELECT CASE WHEN {ClaimedBy} = o.claim THEN {State} ELSE '`+elsewhere+`' END AS state FROM {table} AS j WHERE {ID} = o.id OFFSET 0) AS t`), []any{ids, claims},
		[]any{&id, &state}, func() { found[id] = state })
	if err != nil {
		return nil, fmt.Errorf("read the states of jobs: %w", err)
	}
	return found, nil
}

// arrays returns the IDs of jobs and their claims.
func arrays(list []*item) (ids, claims string) {
	var of, by pgarray.Array
	for _, it := range list {
		of.Int(it.id)
		by.Text(it.claim)
	}
	return of.String(), by.String()
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
