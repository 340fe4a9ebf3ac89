package work

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pgarray"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

// heads claims jobs by the values of a column, for OnePer and FairBy. A loose index scan lists the next jobs of many
// values, for many claims at once. Its cost grows with the number of values, and with the entries of finished jobs that
// vacuum cannot remove. So between two such scans, a list goes on where the last one ended for each value. A claim then
// takes the next jobs of the list that can still be taken.
type heads struct {
	e *engine

	mu    sync.Mutex
	list  []int64 // in the order in which they are to be claimed
	quick bool    // the list goes on where the last one ended
	open  bool    // there may be jobs that are not in the list
	heard bool    // there are hints of jobs that the list does not have

	known  []int64 // for each value, the last job that was listed; the first is for jobs without a value
	left   bool    // the last scan found more values than a list has room for
	cost   time.Duration
	listed time.Time // when the last scan was made
}

const (
	// headsMost is how many jobs are listed at once.
	headsMost = 10_000
	// collisions is how often a claim is repeated that conflicted with that of another worker.
	collisions = 5
)

func (s *heads) more() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open || len(s.list) > 0
}

func (s *heads) hear(h hints) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l, hint := range h {
		if !hint.later && s.e.takes(l.queue) {
			s.open, s.heard = true, true
		}
	}
}

func (s *heads) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.heard = true, true
}

func (s *heads) freed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = true
}

// look makes the next claim list the jobs again.
func (s *heads) look(context.Context) error {
	s.again()
	return nil
}

func (s *heads) claim(ctx context.Context, n int) (got []*item, err error) {
	for len(got) == 0 && err == nil {
		var ids []int64
		var quick bool
		if ids, quick, err = s.next(ctx, n); err != nil || len(ids) == 0 {
			return nil, err
		}
		got, err = s.claimThese(ctx, ids, quick)
	}
	return got, err
}

// next takes up to n jobs from the list. It makes a new one if it is used up, or if there are hints of other jobs and
// scans take less than a fifth of the time, or the last one ended five seconds ago.
func (s *heads) next(ctx context.Context, n int) (ids []int64, quick bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	due := time.Since(s.listed) > min(4*s.cost, behind)
	if len(s.list) == 0 || s.heard && due {
		if !s.open && len(s.list) == 0 {
			return nil, false, nil
		}
		if err := s.relist(ctx, due || len(s.known) < 2); err != nil {
			return nil, false, err
		}
	}
	n = min(n, len(s.list))
	ids = s.list[:n:n]
	s.list = s.list[n:]
	return ids, s.quick, nil
}

// relist makes a list, by a scan or quickly. The caller holds mu, and it is free meanwhile.
func (s *heads) relist(ctx context.Context, scan bool) error {
	known := s.known
	s.open = false
	if scan {
		s.heard, known = false, nil
	}
	s.mu.Unlock()
	began := time.Now()
	list, known, err := s.find(ctx, known)
	s.mu.Lock()
	if scan {
		s.cost, s.listed = time.Since(began), time.Now()
	}
	if err != nil {
		s.open = true
		return err
	}
	s.list, s.quick, s.known = list, !scan, known
	full, another := len(list) >= headsMost, s.e.t.one == "" // with FairBy each value may have another job
	if scan {
		s.left = full || another && len(list) > 0
	}
	if scan || len(list) > 0 {
		s.open = s.open || full || s.left || s.heard
		return nil
	}
	if s.left || s.heard {
		return s.relist(ctx, true)
	}
	return nil
}

// claimThese claims those of the jobs that can still be claimed, in their order.
//
// Those of a quick list were the first of their values when it was made. Only a job that was committed late, or is
// requeued, can have come before one of them since, and the next scan lists it. So they are not compared with all that
// is finished, and the index sees to it that no two of a value run.
func (s *heads) claimThese(ctx context.Context, ids []int64, quick bool) ([]*item, error) {
	text := "{ID} = ANY(?::bigint[]) AND {State} || '' = 'ready' AND {RunAt} <= now()" // find it by its key, and not by the index of ready jobs
	if one := s.e.t.one; one != "" && !quick {
		text += " AND NOT EXISTS (SELECT FROM {table} AS o WHERE o." + one + " = {table}." + one + " AND " + older + each +
			" AND NOT EXISTS (SELECT FROM {table} AS o WHERE o." + one + " = {table}." + one + " AND o.{State} = 'running'" + each
	}
	try := func(ids []int64) ([]*item, error) {
		var list pgarray.Array
		for _, id := range ids {
			list.Int(id)
		}
		return s.e.claim(ctx, power(len(ids)), func(q *gorm.DB) *gorm.DB { return q.Where(s.e.t.sql(text), list.String()) })
	}
	var got []*item
	var err error
	for range collisions {
		if got, err = try(ids); !sqlstate.Is(err, sqlstate.UniqueViolation) {
			break
		}
	}
	if sqlstate.Is(err, sqlstate.UniqueViolation) { // the index refused a second running job with the same value
		for _, id := range ids {
			one, failed := try([]int64{id})
			if failed != nil && !sqlstate.Is(failed, sqlstate.UniqueViolation) {
				return got, failed
			}
			got = append(got, one...)
		}
		err = nil
	}
	slices.SortFunc(got, func(a, b *item) int { return slices.Index(ids, a.id) - slices.Index(ids, b.id) })
	return got, err
}

// each ends a NOT EXISTS. The server looks it up for each row by its value, and makes no join of it: by its statistics hardly
// a job runs, and a join would compare each row with all that run.
const each = " OFFSET 0)"

const older = "o.{ID} < {table}.{ID} AND o.{State} IN ('ready', 'later', 'running')"

// power returns the least power of two that is not less than n. Each different limit is another statement for the server.
func power(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// find lists the next jobs, and locks none: all of them, or those after the ones that are known.
func (s *heads) find(ctx context.Context, known []int64) (list, now []int64, err error) {
	var args []any
	queues := ""
	if s.e.queues != nil {
		var names pgarray.Array
		for _, name := range s.e.queues {
			names.Text(name)
		}
		args, queues = append(args, names.String()), " AND {Queue} = ANY($1::text[])"
	}
	text := s.fair(queues, known)
	if s.e.t.one != "" {
		text = s.one(queues, known)
	}
	var id int64
	var value int
	now = append(now, known...)
	err = s.e.db.each(ctx, s.e.t.sql(text), args, []any{&id, &value}, func() {
		for len(now) <= value {
			now = append(now, 0)
		}
		list, now[value] = append(list, id), id
	})
	return list, now, err
}

// places writes what a statement reads as rows of an id and its place, from 1 on. The server does not keep the statement,
// and does not see how many there are, or it would compile the statement.
func places(list []int64) string {
	var array pgarray.Array
	for _, id := range list {
		array.Int(id)
	}
	return "unnest((SELECT '" + array.String() + "'::bigint[])) WITH ORDINALITY AS k(id, place)"
}

// one finds the oldest unfinished job of each value, if it can be claimed, and the jobs without a value.
func (s *heads) one(queues string, known []int64) string {
	c := s.e.t.one
	unfinished := s.e.t.unfinished()
	columns := c + " AS value, {ID} AS id, {State} AS state, {Queue} AS queue, {Priority} AS priority, {RunAt} AS run_at"
	fair := "NULL::int AS fair"
	if s.e.t.fair != "" {
		fair = s.e.t.fair + " AS fair"
	}
	columns += ", " + fair
	first := "SELECT " + columns + " FROM {table} WHERE " + unfinished + "{live}"
	order := " ORDER BY " + c + ", {ID} LIMIT 1"
	v := "WITH RECURSIVE v AS ((SELECT 1::bigint AS place, f.* FROM (" + first + " AND " + c + " IS NOT NULL" + order + ") AS f) UNION ALL SELECT v.place + 1, n.* FROM v, LATERAL (" +
		first + " AND " + c + " > v.value" + order + ") AS n)"
	alone := " AND NOT EXISTS (SELECT FROM {table} AS o WHERE o." + c + " = v.value AND o.{State} = 'running'" + each
	without := int64(0)
	if known != nil {
		v = "WITH v AS (SELECT k.place, n.* FROM " + places(known[1:]) + ", LATERAL (SELECT " + c + " AS value FROM {table} WHERE {ID} = k.id OFFSET 0) AS p, LATERAL (" +
			first + " AND " + c + " = p.value AND {ID} >= k.id" + order + ") AS n)"
		alone, without = "", known[0]
	}
	free := "SELECT id, place, priority, fair FROM v WHERE state = 'ready' AND run_at <= now()" + map[bool]string{true: " AND queue = ANY($1::text[])"}[queues != ""] + alone +
		" UNION ALL (SELECT {ID}, 0, {Priority}, " + fair + " FROM {table} WHERE " + unfinished + " AND {State} = 'ready' AND " + c + " IS NULL AND {ID} > " + strconv.FormatInt(without, 10) +
		" AND {RunAt} <= now(){live}" + queues + " ORDER BY {ID} LIMIT " + strconv.Itoa(headsMost) + ")"
	by := "priority DESC, id"
	if s.e.t.fair != "" {
		free = "SELECT *, row_number() OVER (PARTITION BY fair ORDER BY priority DESC, id) AS rank FROM (" + free + ") AS free"
		by = "rank, priority DESC, id"
	}
	return v + " SELECT id, place FROM (" + free + ") AS free ORDER BY " + by + " LIMIT " + strconv.Itoa(headsMost)
}

// fair finds the first jobs of each value, enough to fill a list. Of the two limits, the number is for the planner. From
// the other one it would expect a tenth of all jobs for each value, and compile the statement. The ranges leave nothing
// out. They are for the planner too: of a table that was never analyzed it would expect several jobs for each value, and
// read all of them to sort them, where the index has them in order.
func (s *heads) fair(queues string, known []int64) string {
	c := s.e.t.fair
	const most = "1000"
	const all = " BETWEEN '-9223372036854775808'::bigint AND '9223372036854775807'::bigint"
	ready := " FROM {table} WHERE {State} = 'ready'{live}"
	first := func(of string) string {
		return "SELECT * FROM (SELECT {ID} AS id, {Priority} AS priority, row_number() OVER (ORDER BY {Priority} DESC, ({ID} + 0)) AS rank" + ready + " AND " + c + of +
			" AND {Priority}" + all + " AND ({ID} + 0)" + all +
			" AND {RunAt} <= now()" + queues + " ORDER BY {Priority} DESC, ({ID} + 0) LIMIT " + most + ") AS j LIMIT (SELECT " + most + " / greatest(count(*), 1) + 1 FROM v)"
	}
	v := "WITH RECURSIVE v AS ((SELECT 1::bigint AS place, " + c + " AS value" + ready + " AND " + c + " IS NOT NULL ORDER BY " + c + " LIMIT 1) UNION ALL SELECT v.place + 1, n.* FROM v, LATERAL (SELECT " +
		c + ready + " AND " + c + " > v.value ORDER BY " + c + " LIMIT 1) AS n)"
	jobs := "SELECT j.*, v.place FROM v, LATERAL (" + first(" = v.value") + ") AS j UNION ALL (SELECT j.*, 0 FROM (" + first(" IS NULL") + ") AS j)"
	if known != nil {
		v = "WITH v AS (SELECT k.place - 1 AS place, k.id, p.* FROM " + places(known) + ", LATERAL (SELECT " + c + " AS value, {Priority} AS priority FROM {table} WHERE {ID} = k.id OFFSET 0) AS p)"
		const after = " AND {Priority} = v.priority AND ({ID} + 0) > v.id"
		jobs = "SELECT j.*, v.place FROM v, LATERAL (" + first(" = v.value"+after) + ") AS j UNION ALL SELECT j.*, v.place FROM v, LATERAL (" + first(" IS NULL AND v.value IS NULL"+after) + ") AS j"
	}
	return v + " SELECT id, place FROM (" + jobs + ") AS free ORDER BY rank, priority DESC, id LIMIT " + strconv.Itoa(headsMost)
}
