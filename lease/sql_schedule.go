package lease

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/tables"
)

// ScheduleSchema is the DDL of the table of [Manager.Every], for those who keep their own migrations. Times are those
// of the database. No row is ever deleted. If you delete one, its schedule starts anew and has missed nothing.
const ScheduleSchema = tables.Schedule

// scheduleStore reads and writes the row of one key in that table: one method for each statement. It has no state.
type scheduleStore struct {
	server *server
	key    fence.Token // without a number
	owner  string
	within time.Duration // bounds a statement: if the network goes silent, no ctx ends
}

func (s *scheduleStore) query(ctx context.Context, text string, args []any, scan func(rows *sql.Rows) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	_, err := s.server.query(ctx, text, args, scan)
	return err
}

const epoch = `timestamptz 'epoch' + `

const scheduleLook = `SELECT (extract(epoch FROM now()) * 1000000)::bigint, (extract(epoch FROM settled_at) * 1000000)::bigint,
	(extract(epoch FROM tick_at) * 1000000)::bigint, attempts, (extract(epoch FROM retry_at) * 1000000)::bigint, coalesce(problem, ''),
	(extract(epoch FROM next_at) * 1000000)::bigint, token
FROM gormlock_schedule WHERE space = $1::smallint AND id = $2::bigint`

// At a first start no tick was missed: all until now count as done.
const scheduleStart = `INSERT INTO gormlock_schedule (space, id, name, settled_at, attempts, owner, token, failures)
VALUES ($1::smallint, $2::bigint, $3::text, now(), 0, $4::text, 0, 0) ON CONFLICT DO NOTHING`

// look reads the row of the schedule, and creates it if there is none.
func (s *scheduleStore) look(ctx context.Context) (*progress, error) {
	for range 10 {
		var p *progress
		err := s.query(ctx, scheduleLook, []any{s.key.Space, s.key.ID}, func(rows *sql.Rows) error {
			var now, settled int64
			var tick, retry, following sql.NullInt64
			p = &progress{}
			if err := rows.Scan(&now, &settled, &tick, &p.attempts, &retry, &p.problem, &following, &p.token); err != nil {
				return err
			}
			p.now, p.settled, p.tick, p.retryAt, p.next = fromMicro(now), fromMicro(settled), fromNull(tick), fromNull(retry), fromNull(following)
			return nil
		})
		if err != nil || p != nil {
			return p, s.explain(err)
		}
		if err := s.query(ctx, scheduleStart, []any{s.key.Space, s.key.ID, s.key.Name, s.owner}, func(*sql.Rows) error { return nil }); err != nil {
			return nil, s.explain(err)
		}
	}
	return nil, fmt.Errorf("gormlock: schedule %s: its row is deleted again and again", s.key.Name)
}

const scheduleAnnounce = `UPDATE gormlock_schedule SET next_at = ` + epoch + `$3::bigint * interval '1 microsecond'
WHERE space = $1::smallint AND id = $2::bigint AND tick_at IS NULL`

// announce stores the tick that is waited for.
func (s *scheduleStore) announce(ctx context.Context, next time.Time) error {
	return s.explain(s.query(ctx, scheduleAnnounce, []any{s.key.Space, s.key.ID, next.UnixMicro()}, func(*sql.Rows) error { return nil }))
}

// A superseded run can begin and end nothing: the row has the token of the run, and the table of tokens says whether a
// later one was issued.
const scheduleBegin = `WITH ` + durable + `
UPDATE gormlock_schedule s SET
	settled_at = greatest(s.settled_at, ` + epoch + `$4::bigint * interval '1 microsecond'),
	tick_at = ` + epoch + `$5::bigint * interval '1 microsecond',
	attempts = CASE WHEN s.tick_at IS NULL THEN 1 ELSE s.attempts + 1 END,
	retry_at = NULL, next_at = ` + epoch + `$8::bigint * interval '1 microsecond', owner = $7::text, token = $3::bigint
FROM durable
WHERE s.space = $1::smallint AND s.id = $2::bigint AND s.token <= $3::bigint
	AND s.tick_at IS NOT DISTINCT FROM ` + epoch + `$6::bigint * interval '1 microsecond'
	AND s.settled_at = ` + epoch + `$9::bigint * interval '1 microsecond'
	AND NOT EXISTS (SELECT 1 FROM gormlock_fence WHERE space = $10::smallint AND id = $11::bigint AND token > $3::bigint)
RETURNING s.attempts`

// begin stores that a tick has begun and that the ticks before it are skipped. begun is false if another run changed the
// row since p was read.
func (s *scheduleStore) begin(ctx context.Context, t fence.Token, p *progress, next plan) (begun bool, attempt int, err error) {
	settle := p.settled
	if !next.settle.IsZero() {
		settle = next.settle
	}
	err = s.query(ctx, scheduleBegin, []any{
		s.key.Space, s.key.ID, t.Number, settle.UnixMicro(), next.tick.UnixMicro(), toNull(p.tick), s.owner, toNull(next.after),
		p.settled.UnixMicro(), t.Space, t.ID,
	}, func(rows *sql.Rows) error {
		begun = true
		return rows.Scan(&attempt)
	})
	return begun, attempt, s.explain(err)
}

// The outcome of a run is written once: while a run is on, retry_at is NULL; after its outcome is stored, retry_at is set
// or tick_at is NULL. If the answer got lost and the statement is sent again, it gives the same answer and changes
// nothing.
const scheduleEnd = `WITH ` + durable + `, ended AS (
	UPDATE gormlock_schedule s SET
		settled_at = CASE WHEN $5::boolean THEN s.tick_at ELSE s.settled_at END,
		tick_at = CASE WHEN $5::boolean THEN NULL ELSE s.tick_at END,
		attempts = CASE WHEN $5::boolean THEN 0 WHEN $10::boolean THEN s.attempts - 1 ELSE s.attempts END,
		retry_at = CASE WHEN $5::boolean THEN NULL ELSE now() + $6::bigint * interval '1 microsecond' END,
		done_at = CASE WHEN $5::boolean AND $7::text IS NULL THEN s.tick_at ELSE s.done_at END,
		failures = CASE WHEN $10::boolean THEN s.failures WHEN $7::text IS NULL THEN 0 ELSE s.failures + 1 END,
		problem = CASE WHEN $10::boolean THEN s.problem ELSE $7::text END
	FROM durable
	WHERE s.space = $1::smallint AND s.id = $2::bigint AND s.token <= $3::bigint
		AND s.tick_at = ` + epoch + `$4::bigint * interval '1 microsecond' AND (s.retry_at IS NULL OR $5::boolean)
		AND NOT EXISTS (SELECT 1 FROM gormlock_fence WHERE space = $8::smallint AND id = $9::bigint AND token > $3::bigint)
	RETURNING 1
)
SELECT 1 FROM ended
UNION ALL
SELECT 1 FROM gormlock_schedule s WHERE s.space = $1::smallint AND s.id = $2::bigint AND s.token <= $3::bigint
	AND (s.tick_at IS NULL AND s.settled_at = ` + epoch + `$4::bigint * interval '1 microsecond'
		OR s.tick_at = ` + epoch + `$4::bigint * interval '1 microsecond' AND s.retry_at IS NOT NULL AND NOT $5::boolean)
	AND NOT EXISTS (SELECT 1 FROM gormlock_fence WHERE space = $8::smallint AND id = $9::bigint AND token > $3::bigint)`

// end stores the outcome of a run. counts is false if the run was superseded.
func (s *scheduleStore) end(ctx context.Context, t fence.Token, tick time.Time, o outcome) (counts bool, err error) {
	var problem sql.NullString
	if o.err != nil {
		problem = sql.NullString{String: storable(o.err.Error()), Valid: true}
	}
	send := func() error {
		return s.query(ctx, scheduleEnd, []any{
			s.key.Space, s.key.ID, t.Number, tick.UnixMicro(), o.err == nil || o.giveUp, o.pause.Microseconds(), problem, t.Space, t.ID, o.interrupted,
		}, func(*sql.Rows) error {
			counts = true
			return nil
		})
	}
	err = send()
	if state := sqlstate.Of(err); problem.Valid && (state == sqlstate.UntranslatableCharacter || state == sqlstate.CharacterNotInRepertoire) {
		problem.String = inASCII(problem.String)
		err = send()
	}
	return counts, s.explain(err)
}

// inASCII is a text for databases whose encoding lacks characters of it.
func inASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII {
			return '?'
		}
		return r
	}, text)
}

func (s *scheduleStore) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("gormlock: schedule %s: %w", s.key.Name, explain(err))
}

// maxProblem is how many bytes of an error text are stored.
const maxProblem = 8000

// storable returns text without what PostgreSQL cannot store.
func storable(text string) string {
	if len(text) > maxProblem {
		text = text[:maxProblem] + "…"
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

func fromMicro(n int64) time.Time { return time.UnixMicro(n).UTC() }

func fromNull(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return fromMicro(n.Int64)
}

func toNull(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: !t.IsZero()}
}
