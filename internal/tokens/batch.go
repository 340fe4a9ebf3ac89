package tokens

import "github.com/gormlock/gormlock/internal/pgarray"

// Batch issues the next token of many keys in one statement, for code that talks to the
// server without database/sql. Its parameters are those of [BatchArgs], its rows
// (space smallint, id bigint, token bigint), one for each key.
//
// If somebody has locked a row, the statement waits, and so do all its other keys. So the session needs a lock_timeout, and [BatchUnlocked] for the
// time after it. It needs synchronous_commit on. A commit that ends with a warning is [ErrNotDurable].
const Batch = `WITH ` + want + `, again AS (
	UPDATE gormlock_fence f SET token = greatest(f.token + 1, want.first), name = want.name
	FROM want WHERE f.space = want.space AND f.id = want.id
	RETURNING f.space, f.id, f.token
), ` + anew + `
SELECT space, id, token FROM again UNION ALL SELECT space, id, token FROM anew`

// BatchUnlocked is [Batch] without the wait, at twice the cost. It returns no row for a key whose row somebody has locked. Ask again for those
// keys.
const BatchUnlocked = `WITH ` + want + `, unlocked AS MATERIALIZED (
	SELECT f.space, f.id, want.name, want.first
	FROM want JOIN gormlock_fence f USING (space, id) FOR NO KEY UPDATE OF f SKIP LOCKED
), again AS (
	UPDATE gormlock_fence f SET token = greatest(f.token + 1, unlocked.first), name = unlocked.name
	FROM unlocked WHERE f.space = unlocked.space AND f.id = unlocked.id
	RETURNING f.space, f.id, f.token
), ` + anew + `
SELECT space, id, token FROM again UNION ALL SELECT space, id, token FROM anew`

const (
	want = `want AS MATERIALIZED (
	SELECT w.space, w.id, w.name, t.first
	FROM unnest($1::text::smallint[], $2::text::bigint[], $3::text::text[]) w(space, id, name), (SELECT ` + First + `) t(first)
)`
	anew = `anew AS (
	INSERT INTO gormlock_fence (space, id, name, token)
	SELECT space, id, name, first FROM want
	WHERE NOT EXISTS (SELECT 1 FROM gormlock_fence f WHERE f.space = want.space AND f.id = want.id)
	ON CONFLICT DO NOTHING
	RETURNING space, id, token
)`
)

// Key is a key whose next token is wanted.
type Key struct {
	Space int16
	ID    int64
	Name  string // for people
}

// BatchArgs are the parameters of [Batch] and [BatchUnlocked], as text. No key may appear twice.
func BatchArgs(keys []Key) [3]string {
	var spaces, ids, names pgarray.Array
	for _, k := range keys {
		spaces.Int(int64(k.Space))
		ids.Int(k.ID)
		names.Text(k.Name)
	}
	return [3]string{spaces.String(), ids.String(), names.String()}
}
