package tokens

// First is the least number of the server's timeline. The timeline is in the bits from 40 on, which leaves a key 10¹² tokens between two
// promotions. Without it, a standby that was promoted without the last commits of its primary would issue their numbers again.
const First = `((('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint << 40) + 1)`

// next is the number after f's, if an INSERT into the table AS f finds a row.
const next = `greatest(f.token + 1, excluded.token)`

// Durable is a SELECT of one row that makes the transaction wait for its commit even if the session would not. A crash could undo a commit that
// nobody waited for, and then its token would be issued again. Put it into a MATERIALIZED part of the statement and read from that.
const Durable = `SELECT set_config('synchronous_commit', CASE s WHEN 'off' THEN 'on' ELSE s END, true)
	FROM current_setting('synchronous_commit') s`

// DurableToo is [Durable] as a condition, for a statement that changes a row at once.
const DurableToo = `CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) = 'on' ELSE true END`

// IssueOne issues the next token of the key with space $1, id $2 and name $3. If the row is locked, it waits. Its row is the number.
const IssueOne = `WITH durable AS MATERIALIZED (` + Durable + `)
INSERT INTO gormlock_fence AS f (space, id, name, token)
SELECT $1::smallint, $2::bigint, $3::text, ` + First + ` FROM durable
ON CONFLICT (space, id) DO UPDATE SET token = ` + next + `, name = excluded.name
RETURNING token`

// IssueFrom issues the next token for each row of relation, which has the columns space, id and name. It is the part of a statement that takes a
// lock and numbers its holder at once. If the row of a token is locked, it waits. Its rows are (space, id, token). The statement must read from
// [Durable] as well.
func IssueFrom(relation string) string {
	return `INSERT INTO gormlock_fence AS f (space, id, name, token)
SELECT space, id, name, ` + First + ` FROM ` + relation + `
ON CONFLICT (space, id) DO UPDATE SET token = ` + next + `, name = excluded.name
RETURNING f.space, f.id, f.token`
}

// IssueAgain issues the next token of the key with space $1, id $2 and name $3 if relation has a row. The key must have a row already. Its row is
// the number.
func IssueAgain(relation string) string {
	return `UPDATE gormlock_fence f SET token = greatest(f.token + 1, ` + First + `), name = $3::text
FROM ` + relation + ` WHERE f.space = $1::smallint AND f.id = $2::bigint
RETURNING f.token`
}
