package fence

// Durable is a SELECT of one row that makes the transaction wait for its commit, where the
// session would not: a commit that nobody waited for could be undone by a crash, and what it
// issued be issued again. Put it into a MATERIALIZED part of the statement and read from that.
const Durable = `SELECT set_config('synchronous_commit', CASE s WHEN 'off' THEN 'on' ELSE s END, true)
	FROM current_setting('synchronous_commit') s`

// IssueFrom issues the next token for each row of relation, which has the columns space, id
// and name of [Token]: the part of a statement that takes a lock and numbers its holder in
// one go. It waits for whoever has the row of a token locked. Its rows are (space, id,
// token). The statement reads from [Durable] as well.
func IssueFrom(relation string) string {
	return `INSERT INTO gormlock_fence AS f (space, id, name, token)
SELECT space, id, name, ` + first + ` FROM ` + relation + `
ON CONFLICT (space, id) DO UPDATE SET token = ` + next + `, name = excluded.name
RETURNING f.space, f.id, f.token`
}
