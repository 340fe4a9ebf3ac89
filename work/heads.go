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

// heads claims jobs by the values of a column, for OnePer and FairBy. A loose index scan finds the next jobs of many
// values, for many claims at once. Its cost grows with the number of values. A claim then takes the next jobs of this
// list that can still be taken.
type heads struct {
	e *engine

	mu     sync.Mutex
	list   []int64 // in the order in which they are to be claimed
	open   bool    // there may be jobs that are not in the list
	heard  bool    // there are hints of jobs that the list does not have
	cost   time.Duration
	listed time.Time // when the list was made
}

const (
	// headsMost is how many jobs are listed at once.
	headsMost = 5000
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

// look makes the next claim list the jobs again.
func (s *heads) look(context.Context) error {
	s.again()
	return nil
}

func (s *heads) claim(ctx context.Context, n int) (got []*item, err error) {
	for len(got) == 0 && err == nil {
		var ids []int64
		if ids, err = s.next(ctx, n); err != nil || len(ids) == 0 {
			return nil, err
		}
		got, err = s.claimThese(ctx, ids)
	}
	return got, err
}

// next takes up to n jobs from the list. It makes a new list if the old one is used up, or if there are new jobs and
// making a list takes less than a fifth of the time.
func (s *heads) next(ctx context.Context, n int) ([]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 || s.heard && time.Since(s.listed) > 4*s.cost {
		if !s.open && len(s.list) == 0 {
			return nil, nil
		}
		s.open, s.heard = false, false
		s.mu.Unlock()
		began := time.Now()
		list, err := s.find(ctx)
		s.mu.Lock()
		s.cost, s.listed = time.Since(began), time.Now()
		if err != nil {
			s.open = true
			return nil, err
		}
		s.list = list
		s.open = s.open || len(list) >= headsMost || len(list) > 0 && s.e.t.one == "" // each value may have another job
	}
	n = min(n, len(s.list))
	ids := s.list[:n:n]
	s.list = s.list[n:]
	return ids, nil
}

// claimThese claims those of the jobs that can still be claimed, in their order.
func (s *heads) claimThese(ctx context.Context, ids []int64) ([]*item, error) {
	text := "{ID} = ANY(?::bigint[]) AND {State} || '' = 'ready' AND {RunAt} <= now()" // find it by its key, and not by the index of ready jobs
	if one := s.e.t.one; one != "" {
		text += " AND NOT EXISTS (SELECT FROM {table} AS o WHERE o." + one + " = {table}." + one + " AND " + older + ")" +
			" AND NOT EXISTS (SELECT FROM {table} AS o WHERE o." + one + " = {table}." + one + " AND o.{State} = 'running')"
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

const older = "o.{ID} < {table}.{ID} AND o.{State} IN ('ready', 'later', 'running')"

// power returns the least power of two that is not less than n. Each different limit is another statement for the server.
func power(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// find lists the next jobs, and locks none.
func (s *heads) find(ctx context.Context) ([]int64, error) {
	var args []any
	queues := ""
	if s.e.queues != nil {
		var names pgarray.Array
		for _, name := range s.e.queues {
			names.Text(name)
		}
		args, queues = append(args, names.String()), " AND {Queue} = ANY($1::text[])"
	}
	text := s.fair(queues)
	if s.e.t.one != "" {
		text = s.one(queues)
	}
	rows, err := s.e.db.QueryContext(ctx, s.e.t.sql(text), args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var list []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		list = append(list, id)
	}
	return list, rows.Err()
}

// one finds the oldest unfinished job of each value, if it can be claimed, and the jobs without a value.
func (s *heads) one(queues string) string {
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
	free := "SELECT id, priority, fair FROM v WHERE state = 'ready' AND run_at <= now()" + map[bool]string{true: " AND queue = ANY($1::text[])"}[queues != ""] +
		" AND NOT EXISTS (SELECT FROM {table} AS o WHERE o." + c + " = v.value AND o.{State} = 'running')" +
		" UNION ALL (SELECT {ID}, {Priority}, " + fair + " FROM {table} WHERE " + unfinished + " AND {State} = 'ready' AND " + c + " IS NULL AND {RunAt} <= now(){live}" + queues +
		" ORDER BY {ID} LIMIT " + strconv.Itoa(headsMost) + ")"
	by := "priority DESC, id"
	if s.e.t.fair != "" {
		free = "SELECT *, row_number() OVER (PARTITION BY fair ORDER BY priority DESC, id) AS rank FROM (" + free + ") AS free"
		by = "rank, priority DESC, id"
	}
	return "WITH RECURSIVE v AS ((" + first + " AND " + c + " IS NOT NULL" + order + ") UNION ALL SELECT n.* FROM v, LATERAL (" +
		first + " AND " + c + " > v.value" + order + ") AS n) SELECT id FROM (" + free + ") AS free ORDER BY " + by + " LIMIT " + strconv.Itoa(headsMost)
}

// fair finds the first jobs of each value, enough to fill a list. Of the two limits, the number is for the planner. From
// the other one it would expect a tenth of all jobs for each value, and compile the statement.
func (s *heads) fair(queues string) string {
	c := s.e.t.fair
	const most = "1000"
	ready := " FROM {table} WHERE {State} = 'ready'{live}"
	first := func(of string) string {
		return "SELECT * FROM (SELECT {ID} AS id, {Priority} AS priority, row_number() OVER (ORDER BY {Priority} DESC, ({ID} + 0)) AS rank" + ready + " AND " + c + of +
			" AND {RunAt} <= now()" + queues + " ORDER BY {Priority} DESC, ({ID} + 0) LIMIT " + most + ") AS j LIMIT (SELECT " + most + " / greatest(count(*), 1) + 1 FROM v)"
	}
	return "WITH RECURSIVE v AS ((SELECT " + c + " AS value" + ready + " AND " + c + " IS NOT NULL ORDER BY " + c + " LIMIT 1) UNION ALL SELECT n.* FROM v, LATERAL (SELECT " +
		c + ready + " AND " + c + " > v.value ORDER BY " + c + " LIMIT 1) AS n) SELECT id FROM (" +
		"SELECT j.* FROM v, LATERAL (" + first(" = v.value") + ") AS j UNION ALL (" + first(" IS NULL") + ")) AS free ORDER BY rank, priority DESC, id LIMIT " + strconv.Itoa(headsMost)
}
