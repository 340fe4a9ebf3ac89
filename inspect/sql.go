package inspect

// factsSQL is one row. A table counts if it can be read. The last column but one names tables that exist but cannot be read. The last column names
// tables that would be found in a schema of the search_path if the role could use it.
const factsSQL = `
SELECT clock_timestamp(), current_setting('server_version_num')::int, current_database(), current_user, pg_is_in_recovery(),
	pg_postmaster_start_time(),
	current_setting('max_locks_per_transaction')::int * (current_setting('max_connections')::int + current_setting('max_prepared_transactions')::int),
	coalesce(bool_or(readable) FILTER (WHERE name = 'gormlock_key_name'), false),
	coalesce(bool_or(readable) FILTER (WHERE name = 'gormlock_fence'), false),
	coalesce(bool_or(readable) FILTER (WHERE name = 'gormlock_lease'), false),
	coalesce(bool_or(readable) FILTER (WHERE name = 'gormlock_schedule'), false),
	coalesce(string_agg(name, ' ') FILTER (WHERE NOT readable), ''),
	coalesce(json_object_agg(name, (
		SELECT quote_ident(n.nspname) FROM regexp_matches(current_setting('search_path'), '"((?:[^"]|"")*)"|([^",[:space:]]+)', 'g') WITH ORDINALITY AS path(entry, place)
		JOIN pg_namespace n ON n.nspname = coalesce(nullif(replace(entry[1], '""', '"'), '$user'), lower(entry[2]), current_user)
		JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = name AND c.relkind IN ('r', 'p', 'v')
		WHERE NOT has_schema_privilege(n.oid, 'USAGE') ORDER BY place LIMIT 1
	)) FILTER (WHERE readable IS NULL), '{}')::text
FROM (SELECT name, has_table_privilege(to_regclass(name), 'SELECT') AS readable
	FROM unnest(ARRAY['gormlock_key_name', 'gormlock_fence', 'gormlock_lease', 'gormlock_schedule']) name) tables`

// allLocks is pg_locks without NULL in what names a lock, so that locks can be joined.
const allLocks = `
	SELECT locktype, coalesce(database, 0) AS database, coalesce(relation, 0) AS relation, coalesce(page, -1) AS page,
		coalesce(tuple, -1) AS tuple, coalesce(virtualxid, '') AS virtualxid, coalesce(transactionid::text, '') AS xid,
		coalesce(classid::int8, 0) AS classid, coalesce(objid::int8, 0) AS objid, coalesce(objsubid, 0) AS objsubid,
		virtualtransaction, pid, mode, granted, waitstart
	FROM pg_locks`

// thing is what [Lock.Thing] holds of a row c of allLocks.
const thing = `concat_ws('/', c.locktype, c.database, c.relation, c.page, c.tuple, c.virtualxid, c.xid, c.classid, c.objid, c.objsubid)`

// heldSQL selects what the sessions $1 hold.
const heldSQL = `SELECT pid, ` + thing + ` FROM (` + allLocks + ` WHERE granted AND pid = ANY ($1::int[])) c`

// locksSQL reads pg_locks once. $1 is the limit. The holders for a request are found by all columns that name a lock, with a hash join.
// pg_blocking_pids says who blocks a request. It is only called for requests that are shown, because each call stops the lock manager for a moment.
// A wait because of a unique index has no lock that says on which table it is: it is one of the tables that the waiting transaction writes, or
// whose rows it locks.
const locksSQL = `WITH l AS MATERIALIZED (
` + allLocks + `
), here AS (
	SELECT oid FROM pg_database WHERE datname = current_database()
), ours AS (
	SELECT pid FROM pg_stat_activity WHERE datid = (SELECT oid FROM here)
), waited AS MATERIALIZED (
	SELECT locktype, database, relation, page, tuple, virtualxid, xid, classid, objid, objsubid, count(*) AS waiters
	FROM l WHERE NOT granted AND pid IN (SELECT pid FROM ours)
	GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
), shown AS (
	SELECT l.*, coalesce(waiters, 0) AS waiters FROM l LEFT JOIN waited
	USING (locktype, database, relation, page, tuple, virtualxid, xid, classid, objid, objsubid)
	WHERE locktype = 'advisory' AND database = (SELECT oid FROM here) OR waiters > 0 AND (granted OR pid IN (SELECT pid FROM ours))
), places AS MATERIALIZED (
	SELECT pid, locktype, granted, relation, page, tuple FROM l
	WHERE relation <> 0 AND (NOT granted OR locktype = 'tuple') AND database = (SELECT oid FROM here) AND pid IN (SELECT pid FROM l WHERE NOT granted)
), written AS MATERIALIZED (
	SELECT pid, (array_agg(DISTINCT relation))[1:200] AS relations FROM l
	WHERE locktype = 'relation' AND granted AND mode IN ('RowExclusiveLock', 'RowShareLock') AND database = (SELECT oid FROM here)
		AND (pid IN (SELECT pid FROM l WHERE NOT granted AND locktype = 'transactionid')) IS TRUE -- hashed: a semijoin would be a nested loop
	GROUP BY pid
), totals AS (
	SELECT count(*) FILTER (WHERE granted AND locktype = 'advisory') AS held, count(*) FILTER (WHERE NOT granted) AS waiting,
		count(*) AS entries, (SELECT count(*) FROM l) AS everything
	FROM shown
), chosen AS MATERIALIZED (
	SELECT * FROM shown
	ORDER BY granted, waiters = 0, waitstart, pid, classid, objid, objsubid, locktype LIMIT $1
)
SELECT ` + thing + `,
	coalesce(c.locktype, ''), coalesce(c.classid, 0), coalesce(c.objid, 0), coalesce(c.objsubid, 0), coalesce(t.place, ''), coalesce(t.spot, ''), u.tables,
	coalesce(c.mode, ''), coalesce(c.granted, false), c.waitstart, coalesce(c.waiters, 0),
	coalesce(c.pid, 0), coalesce(p.gid, ''), c.pid IS NULL OR c.pid IN (SELECT pid FROM l WHERE locktype = 'virtualxid' AND granted),
	CASE WHEN NOT c.granted THEN array_to_string(pg_blocking_pids(c.pid), ',') ELSE '' END,
	totals.held, totals.waiting, totals.entries, totals.everything
FROM totals LEFT JOIN chosen c ON true
LEFT JOIN l x ON c.pid IS NULL AND x.pid IS NULL AND x.locktype = 'transactionid' AND x.granted AND x.virtualtransaction = c.virtualtransaction
LEFT JOIN pg_prepared_xacts p ON x.xid = p.transaction::text
LEFT JOIN LATERAL (
	SELECT r.oid::regclass::text AS place, CASE WHEN m.page >= 0 THEN format('(%s,%s)', m.page, m.tuple) END AS spot
	FROM places m JOIN pg_class r ON r.oid = m.relation
	WHERE NOT c.granted AND m.pid = c.pid
		AND (m.locktype = c.locktype AND NOT m.granted OR c.locktype = 'transactionid' AND m.locktype = 'tuple')
	LIMIT 1
) t ON true
LEFT JOIN written w ON NOT c.granted AND c.locktype = 'transactionid' AND t.place IS NULL AND w.pid = c.pid
LEFT JOIN LATERAL (
	SELECT json_agg(json_build_object('name', r.oid::regclass::text, 'bare', r.relname,
		'trigger', EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = r.oid AND NOT g.tgisinternal)) ORDER BY r.relispartition, r.relname) AS tables
	FROM unnest(w.relations) m JOIN pg_class r ON r.oid = m AND r.relkind IN ('r', 'p')
) u ON true
ORDER BY c.granted, c.waiters = 0, c.waitstart, c.pid, c.classid, c.objid, c.objsubid, c.locktype`

// sessionsSQL is a row for each live process of $1. A role that may not see another role's session sees no state of it.
const sessionsSQL = `
SELECT pid, coalesce(application_name, ''), coalesce(usename, ''),
	CASE WHEN client_addr IS NOT NULL THEN host(client_addr) || ':' || client_port WHEN client_port = -1 THEN 'local' ELSE '' END,
	coalesce(state, ''), CASE WHEN state IS NULL THEN '' ELSE left(query, 2000) END, backend_start, xact_start, state_change,
	backend_type IS NULL
FROM pg_stat_activity WHERE pid = ANY ($1::int[])`
