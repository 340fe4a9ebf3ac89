package words

import (
	"regexp"
	"strings"
)

// statement describes a statement that is recognized by its beginning and by a part of its text.
type statement struct {
	begins    string
	holds     string // "": no further part
	does, did string // while it runs, and afterwards
	ofKey     bool   // it asks for one lock, and its text does not have the key
}

func (s statement) is(query string) bool {
	return strings.HasPrefix(query, s.begins) && strings.Contains(query, s.holds)
}

// Beginnings of several statements.
const (
	sessionKeys   = "SELECT k FROM (SELECT unnest($1::bigint[]) AS k) AS keys WHERE "
	leaseAndSlots = "WITH main AS MATERIALIZED (\n\tSELECT holder, owner, data, wanted"
	manyLeases    = "WITH given AS MATERIALIZED (\n\tSELECT g.n, g.space, g.id, "
)

var statements = []statement{
	// Waits of package sessionlock, which are cut into slices.
	{begins: "SELECT pg_catalog.pg_advisory_xact_lock", holds: "$1::bigint", does: "takes a session lock", did: "asked for a session lock", ofKey: true},
	{begins: "SELECT pg_catalog.pg_advisory_lock", holds: "$1::bigint", does: "takes a session lock", did: "took a session lock", ofKey: true},
	{begins: "SELECT pg_catalog.set_config('lock_timeout', $1, true)", does: "limits the wait for a session lock", did: "limited the wait for a session lock", ofKey: true},
	{begins: sessionKeys + "NOT pg_catalog.pg_try_advisory_lock", does: "tries session locks", did: "asked for session locks"},
	{begins: sessionKeys + "NOT pg_catalog.pg_advisory_unlock", does: "releases session locks", did: "released session locks"},
	{begins: sessionKeys + "k IN (", does: "looks who waits for its session locks", did: "looked who waits for its session locks"},
	{begins: "SELECT CASE WHEN pg_is_in_recovery() THEN 'standby' WHEN ", does: "tries a session lock", did: "tried a session lock"},
	{begins: "SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM pg_locks WHERE", holds: "THEN 'not held'", does: "releases a session lock", did: "released a session lock"},
	{begins: "SELECT pg_catalog.pg_advisory_unlock_all()", does: "releases all session locks", did: "released all session locks"},

	// Row locks: the statements around the query of the program.
	{begins: "SAVEPOINT gormlock; SELECT set_config('gormlock.lock_timeout'", does: "sets the timeout of a row lock", did: "set the timeout of a row lock"},
	{begins: "SELECT set_config('lock_timeout', split_part(kept, ' ', 1), true)", does: "has its row lock", did: "took a row lock"},
	{begins: "ROLLBACK TO SAVEPOINT gormlock", does: "goes back to before a lock it did not get", did: "did not get a lock, and went back to before"},

	{begins: "WITH RECURSIVE read AS (\n SELECT to_regclass($1)::oid", does: "looks whether rows can be locked", did: "looked whether rows can be locked"},

	{begins: "SAVEPOINT gormlock_once_", holds: "; INSERT INTO gormlock_once", does: "asks whether a request was done before (Once)", did: "asked whether a request was done before (Once)"},
	{begins: "WITH stored AS (UPDATE gormlock_once SET result", does: "stores the result of a request (Once)", did: "stored the result of a request (Once)"},
	{begins: "RELEASE SAVEPOINT gormlock_once_", does: "ends a request (Once)", did: "ended a request (Once)"},
	{begins: "SELECT encode(convert_to(result::text, 'UTF8'), 'base64'), encode(request", does: "reads the result of a request (Once)", did: "read the result of a request (Once)"},
	{begins: "WITH due AS MATERIALIZED (\n\tSELECT key FROM gormlock_once", does: "sweeps old requests (SweepOnce)", did: "swept old requests (SweepOnce)"},

	{begins: "WITH want AS MATERIALIZED (\n\tSELECT w.space, w.id, w.name, t.first", does: "issues fencing tokens", did: "issued fencing tokens"},
	{begins: "WITH durable AS MATERIALIZED (SELECT set_config('synchronous_commit'", holds: "INSERT INTO gormlock_fence", does: "issues a fencing token", did: "issued a fencing token"},
	{begins: "INSERT INTO gormlock_fence", does: "issues a fencing token", did: "issued a fencing token"},
	{begins: "SELECT token FROM gormlock_fence", does: "checks a fencing token", did: "checked a fencing token"},

	{begins: leaseAndSlots, holds: "generate_series(1, greatest($8", does: "acquires a slot of a lease", did: "asked for a slot of a lease"},
	{begins: leaseAndSlots, holds: "), taken AS MATERIALIZED (", does: "acquires a lease", did: "asked for a lease"},
	{begins: leaseAndSlots, does: "asks who holds a lease", did: "asked who holds a lease"},
	{begins: "WITH taken AS MATERIALIZED (\n\tSELECT owner, wanted, expires_at", does: "acquires a lease", did: "asked for a lease"},
	{begins: "WITH taken AS MATERIALIZED (\n\tSELECT locked_by, lock_until", does: "acquires a ShedLock", did: "asked for a ShedLock"},
	{begins: "WITH mine AS (\n\tUPDATE ", holds: ".expires_at <= now()\n", does: "acquires a lease", did: "asked for a lease"},
	{begins: "UPDATE ", holds: " SET expires_at = l.acquired_at + $4::bigint", does: "releases a lease", did: "released a lease"},
	{begins: manyLeases + "g.name", does: "acquires leases", did: "asked for leases"},
	{begins: manyLeases, holds: "released AS (", does: "releases leases", did: "released leases"},
	{begins: manyLeases, holds: "renewed AS (", does: "renews leases", did: "renewed leases"},

	{begins: "SELECT (extract(epoch FROM now()) * 1000000)::bigint, (extract(epoch FROM settled_at)", does: "looks how far a schedule has come", did: "looked how far a schedule has come"},
	{begins: "INSERT INTO gormlock_schedule", does: "starts a schedule", did: "started a schedule"},
	{begins: "UPDATE gormlock_schedule SET next_at", does: "announces the next tick of a schedule", did: "announced the next tick of a schedule"},
	{begins: "WITH durable AS MATERIALIZED (SELECT set_config('synchronous_commit'", holds: "UPDATE gormlock_schedule s SET\n\tsettled_at = greatest(", does: "begins a tick of a schedule", did: "began a tick of a schedule"},
	{begins: "WITH durable AS MATERIALIZED (SELECT set_config('synchronous_commit'", holds: "UPDATE gormlock_schedule s SET\n\t\tsettled_at = CASE", does: "ends a tick of a schedule", did: "ended a tick of a schedule"},

	{begins: "INSERT INTO gormlock_key_name", does: "writes names of keys", did: "wrote names of keys"},
	{begins: "DELETE FROM gormlock_key_name", does: "sweeps old names of keys", did: "swept old names of keys"},
	{begins: "SELECT 1; COMMIT", does: "commits", did: "committed"},
}

// claimed matches the part of each Claim before the conditions of the program: the table, and the first column of its key.
var claimed = regexp.MustCompile(`(?s)^(?:UPDATE .* FROM|WITH "gormlock_free" AS) .*SELECT ((?:"[^"]+"\.)+)"[^"]+" AS "gormlock_key1"`)

// claim is the statement of a Claim.
func claim(query string) (statement, bool) {
	found := claimed.FindStringSubmatch(query)
	if found == nil {
		return statement{}, false
	}
	table := strings.ReplaceAll(strings.TrimSuffix(found[1], "."), `"`, "")
	return statement{does: "claims rows of " + table, did: "claimed rows of " + table}, true
}
