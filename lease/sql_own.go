package lease

import (
	"strings"

	"github.com/gormlock/gormlock/internal/tokens"
)

// A row is free when expires_at has passed. holder names one acquisition. It is empty after a release, so a statement
// that is still on its way does not find it. wanted asks the releaser for a notification; taking the lease clears it. The
// holder's name has a prefix for people: "leader:", "tick:" for a schedule, nothing for a plain lease.

// ownStatements are the statements for the table of [Schema], whose name is quoted.
func ownStatements(table string) *statements {
	named := strings.NewReplacer("{lease}", table)
	return &statements{
		acquire:         named.Replace(unlistened.Replace(ownAcquire)),
		acquireFreed:    named.Replace(ownAcquireFreed),
		acquireListened: named.Replace(listened(ownMarked).Replace(ownAcquire)),
		acquireMany:     named.Replace(ownAcquireMany),
		renew:           named.Replace(ownRenew),
		release:         named.Replace(ownRelease),
		releaseFree:     named.Replace(ownReleaseFree),
		releaseMany:     named.Replace(ownReleaseMany),
		holder:          named.Replace(slotsKnown.Replace(ownHolder)),

		acquireSlot:         named.Replace(slotsKnown.Replace(unlistened.Replace(ownAcquireSlot))),
		acquireSlotListened: named.Replace(slotsKnown.Replace(listened(ownSlotsMarked).Replace(ownAcquireSlot))),
		acquireAll:          named.Replace(slotsKnown.Replace(unlistened.Replace(ownAcquireAll))),
		acquireAllListened:  named.Replace(slotsKnown.Replace(listened(ownSlotsMarked).Replace(ownAcquireAll))),
	}
}

// unlistened and listened make two statements of one text: the second marks a lease that is taken, so its release is
// notified.
var unlistened = strings.NewReplacer(", {marked}", "", "{is marked}", "false")

func listened(marked string) *strings.Replacer {
	return strings.NewReplacer("{marked}", marked, "{is marked}", "wanted OR EXISTS (SELECT 1 FROM marked)")
}

// ownTakeFree ends an INSERT that takes a row which is not there yet, or has run out.
const ownTakeFree = `ON CONFLICT (space, id) DO UPDATE SET name = excluded.name, holder = excluded.holder, owner = excluded.owner,
		data = excluded.data, acquired_at = excluded.acquired_at, expires_at = excluded.expires_at, wanted = false
	WHERE l.expires_at <= now()
	RETURNING l.space, l.id, l.name`

// Look first whether the lease is taken: then a refusal writes nothing.
var ownAcquire = `WITH taken AS MATERIALIZED (
	SELECT owner, wanted, expires_at - now() AS remains, ` + ofSlots + ` FROM {lease} l
	WHERE space = $1::smallint AND id = $2::bigint AND expires_at > now()
), ` + durable + `, mine AS (
	INSERT INTO {lease} AS l (space, id, name, holder, owner, data, acquired_at, expires_at, wanted)
	SELECT $1::smallint, $2::bigint, $3::text, $4::text, $6::text, $7::bytea, now(), now() + $5::bigint * interval '1 microsecond', false
	FROM durable WHERE NOT EXISTS (SELECT 1 FROM taken)
	` + ownTakeFree + `
), issued AS (
	` + issueFromMine + `
), {marked}
SELECT token, ''::text, 0::bigint, false, false FROM issued
UNION ALL
SELECT 0, owner, ceil(extract(epoch FROM remains) * 1000000)::bigint, {is marked}, of_slots FROM taken`

// ownMarked stores a waiter's wish to be notified if the lease is still taken. If it is free, nobody would read the wish,
// and the waiter asks again.
const ownMarked = `marked AS (
	UPDATE {lease} l SET wanted = true FROM taken
	WHERE NOT taken.wanted AND l.space = $1::smallint AND l.id = $2::bigint AND l.expires_at > now()
	RETURNING 1
)`

// A key that was leased before has its rows already, so two plain updates are enough. They cost half of ownAcquire, but say nothing if the key is
// taken after all.
var ownAcquireFreed = `WITH mine AS (
	UPDATE {lease} l SET name = $3::text, holder = $4::text, owner = $6::text, data = NULL,
		acquired_at = now(), expires_at = now() + $5::bigint * interval '1 microsecond', wanted = false
	FROM gormlock_fence f
	WHERE l.space = $1::smallint AND l.id = $2::bigint AND l.expires_at <= now()
		AND f.space = $1::smallint AND f.id = $2::bigint AND ` + tokens.DurableToo + `
	RETURNING 1
)
` + tokens.IssueAgain("mine")

// The plan of a release of one lease does not depend on the parameters, so the server keeps it. For a list it would make
// a new plan each time.
//
// A release does not wait for the disk: if a crash undoes it, the lease runs out. Anything acquired later comes after it in the log.
const ownRelease = `UPDATE {lease} l SET expires_at = l.acquired_at + $4::bigint * interval '1 microsecond', holder = ''
WHERE l.space = $1::smallint AND l.id = $2::bigint AND l.holder = $3::text
RETURNING set_config('synchronous_commit', 'off', true), CASE WHEN wanted THEN pg_notify('` + channel + `', space || ':' || id)::text END`

// ownList are the parameters of a statement for many.
const ownList = `given AS MATERIALIZED (
	SELECT g.n, g.space, g.id, g.holder, g.span * interval '1 microsecond' AS span
	FROM unnest($4::text::smallint[], $1::text::bigint[], $2::text::text[], $3::text::bigint[]) WITH ORDINALITY g(space, id, holder, span, n)
)`

// ownShortList is ownList for at most a few hundred items. The lists come out of a SELECT, so the server does not make a
// plan for each length.
const ownShortList = `given AS MATERIALIZED (
	SELECT g.n, g.space, g.id, g.holder, g.span * interval '1 microsecond' AS span
	FROM unnest((SELECT $4::text)::smallint[], (SELECT $1::text)::bigint[], (SELECT $2::text)::text[], (SELECT $3::text)::bigint[])
		WITH ORDINALITY g(space, id, holder, span, n)
)`

// Only keys that were leased before, are free, and whose rows nobody has locked are taken together. The other keys get no
// row, and their callers then ask alone. No key is in the list twice.
var ownAcquireMany = `WITH given AS MATERIALIZED (
	SELECT g.n, g.space, g.id, g.name, g.holder, g.span * interval '1 microsecond' AS span
	FROM unnest((SELECT $4::text)::smallint[], (SELECT $1::text)::bigint[], (SELECT $5::text)::text[], (SELECT $2::text)::text[], (SELECT $3::text)::bigint[])
		WITH ORDINALITY g(space, id, name, holder, span, n)
), taken AS MATERIALIZED (
	SELECT given.n, l.owner, l.expires_at - now() AS remains, ` + ofSlots + `
	FROM given JOIN {lease} l USING (space, id) WHERE l.expires_at > now()
), ` + durable + `, free AS MATERIALIZED (
	SELECT l.space, l.id, given.name, given.holder, given.span
	FROM durable, given JOIN {lease} l USING (space, id) JOIN gormlock_fence f USING (space, id)
	WHERE l.expires_at <= now()
	FOR NO KEY UPDATE OF l, f SKIP LOCKED
), mine AS (
	UPDATE {lease} l SET name = free.name, holder = free.holder, owner = $6::text,
		data = NULL, acquired_at = now(), expires_at = now() + free.span, wanted = false
	FROM free WHERE l.space = free.space AND l.id = free.id
	RETURNING l.space, l.id, l.name
), issued AS (
	` + issueFromMine + `
)
SELECT 0, space, id, token, ''::text, 0::bigint, false FROM issued
UNION ALL
SELECT n, 0, 0, 0, owner, ceil(extract(epoch FROM remains) * 1000000)::bigint, of_slots FROM taken`

// A row that somebody has locked is skipped and tried again later, so it does not keep the others from being renewed.
const ownRenew = `WITH ` + ownList + `, ` + durable + `, free AS MATERIALIZED (
	SELECT given.n, l.space, l.id, given.span
	FROM durable, given JOIN {lease} l USING (space, id)
	WHERE l.holder = given.holder AND l.expires_at > now()
	FOR NO KEY UPDATE OF l SKIP LOCKED
), renewed AS (
	UPDATE {lease} l SET expires_at = now() + free.span FROM free
	WHERE l.space = free.space AND l.id = free.id
	RETURNING free.n
)
SELECT given.n, EXISTS (SELECT 1 FROM {lease} l
	WHERE l.space = given.space AND l.id = given.id AND l.holder = given.holder AND l.expires_at > now())
FROM given WHERE NOT EXISTS (SELECT 1 FROM renewed WHERE renewed.n = given.n)`

// A row that somebody has locked is skipped here, and released alone.
const ownReleaseFree = `WITH ` + ownShortList + `, free AS MATERIALIZED (
	SELECT given.n, l.space, l.id, given.span
	FROM given JOIN {lease} l USING (space, id)
	WHERE l.holder = given.holder
	FOR NO KEY UPDATE OF l SKIP LOCKED
), released AS (
	UPDATE {lease} l SET expires_at = l.acquired_at + free.span, holder = '' FROM free
	WHERE l.space = free.space AND l.id = free.id
	RETURNING free.n, l.space, l.id, l.wanted
), soon AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
SELECT n, CASE WHEN wanted THEN pg_notify('` + channel + `', space || ':' || id)::text END FROM released, soon`

const ownReleaseMany = `WITH ` + ownList + `, released AS (
	UPDATE {lease} l SET expires_at = l.acquired_at + given.span, holder = '' FROM given
	WHERE l.space = given.space AND l.id = given.id AND l.holder = given.holder
	RETURNING given.n, l.space, l.id, l.wanted
)
SELECT n, CASE WHEN wanted THEN pg_notify('` + channel + `', space || ':' || id)::text END FROM released`
