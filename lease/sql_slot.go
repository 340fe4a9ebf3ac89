package lease

import "strings"

// A key with slots has a row for each slot, in its own space: that of the key plus 16 times the number of the slot, from
// 1. So a slot is renewed and released, and gets tokens, like any lease. Meanwhile the row of the key stands for all
// slots. Its holder is "slots n x": n is how many slots there may be, and x changes whenever a slot is taken. This row
// does not run out. A caller that takes a slot (or the whole key after slots) counts the slots and then changes this row.
// If the row has changed since the count, the caller lost a race and counts again.

// slotsKnown reads from the row of a key what it says about slots.
var slotsKnown = strings.NewReplacer(
	"{main}", `main AS MATERIALIZED (
	SELECT holder, owner, data, wanted, acquired_at, expires_at,
		CASE WHEN holder LIKE 'slots %' THEN split_part(holder, ' ', 2)::integer ELSE 0 END AS slots
	FROM {lease} WHERE space = $1::smallint AND id = $2::bigint
)`,
	"{slot}", `l.space = ($1::smallint + 16 * s.n)::smallint AND l.id = $2::bigint`,
)

// ofSlots is a column that says whether the row l stands for slots, which the statement for the whole key does not see.
const ofSlots = `l.holder LIKE 'slots %' AS of_slots`

// farOff is when the row of a key with slots runs out.
const farOff = `timestamptz '2200-01-01 00:00:00+00'`

// Count the slots that are taken, then change the row of the key, then the row of the free slot with the least number.
var ownAcquireSlot = `WITH {main}, taken AS MATERIALIZED (
	SELECT s.n, l.owner, l.wanted, l.expires_at - now() AS remains
	FROM generate_series(1, greatest($8::integer, (SELECT slots FROM main))) s(n) JOIN {lease} l ON {slot}
	WHERE l.expires_at > now()
	UNION ALL
	SELECT 0, owner, wanted, expires_at - now() FROM main WHERE slots = 0 AND expires_at > now()
), free AS MATERIALIZED (
	SELECT min(s.n) AS n FROM generate_series(1, $8::integer) s(n)
	WHERE NOT EXISTS (SELECT 1 FROM taken WHERE taken.n = s.n)
	HAVING (SELECT count(*) < $8::integer AND count(*) FILTER (WHERE n = 0) = 0 FROM taken)
), ` + durable + `, counted AS (
	INSERT INTO {lease} AS l (space, id, name, holder, owner, acquired_at, expires_at, wanted)
	SELECT $1::smallint, $2::bigint, $3::text, 'slots ' || most || ' ' || $4::text, most || ' slots', now(), ` + farOff + `, false
	FROM durable, free, LATERAL (SELECT greatest($8::integer, (SELECT max(n) FROM taken))) m(most)
	ON CONFLICT (space, id) DO UPDATE SET name = excluded.name, holder = excluded.holder, owner = excluded.owner,
		data = NULL, acquired_at = excluded.acquired_at, expires_at = excluded.expires_at, wanted = false
	WHERE l.holder = (SELECT holder FROM main) AND (l.holder LIKE 'slots %' OR l.expires_at <= now())
	RETURNING 1
), mine AS (
	INSERT INTO {lease} AS l (space, id, name, holder, owner, data, acquired_at, expires_at, wanted)
	SELECT ($1::smallint + 16 * free.n)::smallint, $2::bigint, $3::text || ' slot ' || free.n - 1, $4::text, $6::text, $7::bytea,
		now(), now() + $5::bigint * interval '1 microsecond', false
	FROM counted, free
	` + ownTakeFree + `
), issued AS (
	` + issueFromMine + `
), {marked}
SELECT token, ''::text, 0::bigint, false, space >> 4 FROM issued
UNION ALL
(SELECT 0, owner, ceil(extract(epoch FROM remains) * 1000000)::bigint, {is marked}, (SELECT count(*) FROM taken)::integer
FROM taken WHERE NOT EXISTS (SELECT 1 FROM free) ORDER BY remains LIMIT 1)`

// ownAcquireAll takes the whole key after it had slots, if no slot is held any more.
var ownAcquireAll = `WITH {main}, taken AS MATERIALIZED (
	SELECT s.n, l.owner, l.wanted, l.expires_at - now() AS remains
	FROM main, generate_series(1, main.slots) s(n) JOIN {lease} l ON {slot}
	WHERE l.expires_at > now()
), free AS MATERIALIZED (
	SELECT holder FROM main WHERE slots > 0 AND NOT EXISTS (SELECT 1 FROM taken)
), ` + durable + `, mine AS (
	UPDATE {lease} l SET name = $3::text, holder = $4::text, owner = $6::text, data = $7::bytea,
		acquired_at = now(), expires_at = now() + $5::bigint * interval '1 microsecond', wanted = false
	FROM durable, free WHERE l.space = $1::smallint AND l.id = $2::bigint AND l.holder = free.holder
	RETURNING l.space, l.id, l.name
), issued AS (
	` + issueFromMine + `
), {marked}
SELECT token, ''::text, 0::bigint, false, 0 FROM issued
UNION ALL
(SELECT 0, owner, ceil(extract(epoch FROM remains) * 1000000)::bigint, {is marked}, (SELECT count(*) FROM taken)::integer
FROM taken ORDER BY remains LIMIT 1)`

// ownSlotsMarked stores a waiter's wish to be notified in every row that blocks it: the release of any of them may be enough.
const ownSlotsMarked = `marked AS (
	UPDATE {lease} l SET wanted = true FROM taken
	WHERE NOT EXISTS (SELECT 1 FROM free) AND NOT taken.wanted
		AND l.space = ($1::smallint + 16 * taken.n)::smallint AND l.id = $2::bigint AND l.expires_at > now()
	RETURNING 1
)`

// ownHolder reads the holder of a key, or of its held slot with the least number.
const ownHolder = `WITH {main}
SELECT owner, data, (extract(epoch FROM now() - acquired_at) * 1000000)::bigint, ceil(extract(epoch FROM expires_at - now()) * 1000000)::bigint
FROM main WHERE slots = 0 AND expires_at > now()
UNION ALL
(SELECT l.owner, l.data, (extract(epoch FROM now() - l.acquired_at) * 1000000)::bigint, ceil(extract(epoch FROM l.expires_at - now()) * 1000000)::bigint
FROM main, generate_series(1, main.slots) s(n) JOIN {lease} l ON {slot}
WHERE l.expires_at > now() ORDER BY s.n LIMIT 1)`
