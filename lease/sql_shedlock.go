package lease

import (
	"strings"

	"github.com/gormlock/gormlock/lockkey"
)

// shedlockSchema is the DDL that ShedLock's documentation gives for PostgreSQL.
const shedlockSchema = `CREATE TABLE IF NOT EXISTS shedlock (
	name       varchar(64)  NOT NULL,
	lock_until timestamp    NOT NULL,
	locked_at  timestamp    NOT NULL,
	locked_by  varchar(255) NOT NULL,
	PRIMARY KEY (name)
)`

// shedlockStatements are the statements for ShedLock's table, whose name is quoted. Conditions and times are those of its
// own statements (usingDbTime): the columns hold UTC without a zone, a row is free when lock_until has passed, and no row
// is ever deleted. locked_by is the owner and the name of the acquisition, so no other acquisition has the same.
func shedlockStatements(table string) *statements {
	named := strings.NewReplacer("{shedlock}", table, "{now}", "timezone('utc', CURRENT_TIMESTAMP)")
	return &statements{
		acquire:     named.Replace(shedlockAcquire),
		renew:       named.Replace(shedlockRenew),
		release:     named.Replace(shedlockRelease),
		releaseMany: named.Replace(shedlockReleaseMany),
		holder:      named.Replace(shedlockHolder),
	}
}

var shedlockAcquire = `WITH taken AS MATERIALIZED (
	SELECT locked_by, lock_until - {now} AS remains FROM {shedlock} WHERE name = $6::text AND lock_until > {now}
), ` + durable + `, took AS (
	INSERT INTO {shedlock} AS l (name, lock_until, locked_at, locked_by)
	SELECT $6::text, {now} + $5::bigint * interval '1 microsecond', {now}, $4::text
	FROM durable WHERE NOT EXISTS (SELECT 1 FROM taken)
	ON CONFLICT (name) DO UPDATE SET lock_until = excluded.lock_until, locked_at = excluded.locked_at, locked_by = excluded.locked_by
	WHERE l.lock_until <= {now}
	RETURNING 1
), mine AS (
	SELECT $1::smallint AS space, $2::bigint AS id, $3::text AS name FROM took
), issued AS (
	` + issueFromMine + `
)
SELECT token, ''::text, 0::bigint, false, false FROM issued
UNION ALL
SELECT 0, locked_by::text, ceil(extract(epoch FROM remains) * 1000000)::bigint, false, false FROM taken`

const shedlockList = `given AS MATERIALIZED (
	SELECT g.n, g.name, g.holder, g.span * interval '1 microsecond' AS span
	FROM unnest($1::text::text[], $2::text::text[], $3::text::bigint[]) WITH ORDINALITY g(name, holder, span, n)
)`

const shedlockRenew = `WITH ` + shedlockList + `, ` + durable + `, free AS MATERIALIZED (
	SELECT given.n, given.span, l.name
	FROM durable, given JOIN {shedlock} l ON l.name = given.name
	WHERE l.locked_by = given.holder AND l.lock_until > {now}
	FOR NO KEY UPDATE OF l SKIP LOCKED
), renewed AS (
	UPDATE {shedlock} l SET lock_until = {now} + free.span FROM free WHERE l.name = free.name
	RETURNING free.n
)
SELECT given.n, EXISTS (SELECT 1 FROM {shedlock} l
	WHERE l.name = given.name AND l.locked_by = given.holder AND l.lock_until > {now})
FROM given WHERE NOT EXISTS (SELECT 1 FROM renewed WHERE renewed.n = given.n)`

const shedlockRelease = `UPDATE {shedlock} l SET lock_until = GREATEST(l.locked_at + $3::bigint * interval '1 microsecond', {now})
WHERE l.name = $1::text AND l.locked_by = $2::text`

const shedlockReleaseMany = `WITH ` + shedlockList + `, released AS (
	UPDATE {shedlock} l SET lock_until = GREATEST(l.locked_at + given.span, {now}) FROM given
	WHERE l.name = given.name AND l.locked_by = given.holder
	RETURNING given.n
)
SELECT n, NULL::text FROM released`

const shedlockHolder = `SELECT locked_by::text, NULL::bytea, (extract(epoch FROM {now} - locked_at) * 1000000)::bigint, ceil(extract(epoch FROM lock_until - {now}) * 1000000)::bigint
FROM {shedlock} WHERE name = $1::text AND lock_until > {now}`

// shedlockName returns the name that Java gives to the lock of a key.
func shedlockName(k lockkey.Key) string {
	if k == k.Named(k.Topic()) {
		return k.Topic()
	}
	return k.Name()
}

// holderMark is between the owner and the name of an acquisition in locked_by.
const holderMark = " #"

// shedlockOwner returns the owner in a locked_by. If Java wrote it, that is all of it.
func shedlockOwner(lockedBy string) string {
	owner, _, _ := strings.Cut(lockedBy, holderMark)
	return owner
}
