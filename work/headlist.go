package work

import (
	"context"
	"strconv"
)

// waits is the place of a job that waits for a younger one that runs.
const waits = -1

// find lists the next jobs: all of them, or those after the known ones. It locks none. It reports whether there are jobs that wait for a younger
// one.
func (s *heads) find(ctx context.Context, known []int64) (list, now []int64, blocked bool, err error) {
	args, queues := s.e.inQueues()
	queues += s.e.refused.claim.without() // so with OnePer a job that is left out still holds up the later ones
	text := s.fair(queues, known)
	if s.e.t.one != "" {
		text = s.one(queues, known)
	}
	var id int64
	var value int
	now = append(make([]int64, 0, len(known)+1), known...)
	err = s.e.db.each(ctx, s.e.t.sql(text), args, []any{&id, &value}, func() {
		if value == waits {
			blocked = true
			return
		}
		for len(now) <= value {
			now = append(now, 0)
		}
		list, now[value] = append(list, id), id
	})
	return list, now, blocked, err
}

// places writes IDs so that a statement reads them as rows of an id and its place, from 1 on. The server does not keep the statement. It does not
// see how many IDs there are either, or it would JIT-compile the statement.
func places(list []int64) string {
	return "unnest((SELECT '" + array(list) + "'::bigint[])) WITH ORDINALITY AS k(id, place)"
}

// one finds the oldest waiting job of each value, if it can be claimed or waits for a younger one that runs, and the jobs without a value. If known
// is not empty, it only finds further jobs without a value.
func (s *heads) one(queues string, known []int64) string {
	c := s.e.t.one
	fair, by := "NULL::int", "place >= 0, priority DESC, id"
	if s.e.t.fair != "" {
		fair, by = "t."+s.e.t.fair, "place >= 0, row_number() OVER (PARTITION BY fair ORDER BY priority DESC, id), priority DESC, id"
	}
	most := " LIMIT " + strconv.Itoa(headsMost)
	free := "{State} = 'ready' AND {RunAt} <= now()" + queues
	of := "t.{ID} AS id, t.{Priority} AS priority, " + fair + " AS fair"
	from := " FROM {table} AS t WHERE " + s.e.t.waiting() + "{live} AND t." + c
	if len(known) > 0 {
		return "SELECT id, 0 FROM (SELECT " + of + ", 0 AS place" + from + " IS NULL AND " + free + " AND t.{ID} > " + strconv.FormatInt(known[0], 10) + " ORDER BY t.{ID}" + most + ") AS jobs ORDER BY " + by
	}
	first := "SELECT " + of + ", t." + c + " AS value, " + free + " AS free" + from
	order := " ORDER BY t." + c + ", t.{ID} LIMIT 1" // a bare name would be the selected column of that name, if there is one
	return "WITH RECURSIVE gormlock_values AS ((" + first + " IS NOT NULL" + order + ") UNION ALL SELECT n.* FROM gormlock_values AS v, LATERAL (" + first + " > v.value" + order + ") AS n), " +
		"gormlock_waiting AS (SELECT *, (SELECT o.{ID} FROM {table} AS o WHERE o." + c + " = v.value AND o.{State} = 'running' LIMIT 1) AS runs FROM gormlock_values AS v) " +
		"SELECT id, place FROM (SELECT id, priority, fair, CASE WHEN runs IS NULL THEN 1 ELSE " + strconv.Itoa(waits) + " END AS place FROM gormlock_waiting WHERE runs IS NULL AND free OR runs > id" +
		" UNION ALL (SELECT " + of + ", 0" + from + " IS NULL AND " + free + " ORDER BY t.{ID}" + most + ")) AS jobs ORDER BY " + by + most
}

// fair finds the first jobs of each value, enough to fill a list. The limit that is a number is for the planner: from the other limit it would
// expect a tenth of all jobs for each value, and JIT-compile the statement. The ranges exclude nothing. They are for the planner too: for a table
// that was never analyzed it would expect several jobs for each value, and would read and sort all of them, although the index has them in order.
func (s *heads) fair(queues string, known []int64) string {
	c := "t." + s.e.t.fair
	const most = "1000"
	const all = " BETWEEN '-9223372036854775808'::bigint AND '9223372036854775807'::bigint"
	ready := " FROM {table} AS t WHERE {State} = 'ready'{live}"
	first := func(of string) string {
		return "SELECT * FROM (SELECT t.{ID} AS id, t.{Priority} AS priority, row_number() OVER (ORDER BY t.{Priority} DESC, (t.{ID} + 0)) AS rank" + ready + " AND " + c + of +
			" AND {Priority}" + all + " AND ({ID} + 0)" + all +
			" AND {RunAt} <= now()" + queues + " ORDER BY t.{Priority} DESC, (t.{ID} + 0) LIMIT " + most + ") AS j LIMIT (SELECT " + most + " / greatest(count(*), 1) + 1 FROM gormlock_values)"
	}
	v := "WITH RECURSIVE gormlock_values AS ((SELECT 1::bigint AS place, " + c + " AS value" + ready + " AND " + c + " IS NOT NULL ORDER BY " + c + " LIMIT 1) UNION ALL SELECT v.place + 1, n.* FROM gormlock_values AS v, LATERAL (SELECT " +
		c + ready + " AND " + c + " > v.value ORDER BY " + c + " LIMIT 1) AS n)"
	jobs := "SELECT j.*, v.place FROM gormlock_values AS v, LATERAL (" + first(" = v.value") + ") AS j UNION ALL (SELECT j.*, 0 FROM (" + first(" IS NULL") + ") AS j)"
	if known != nil {
		v = "WITH gormlock_values AS (SELECT k.place - 1 AS place, k.id, p.* FROM " + places(known) + ", LATERAL (SELECT " + c + " AS value, t.{Priority} AS priority FROM {table} AS t WHERE t.{ID} = k.id OFFSET 0) AS p)"
		const after = " AND {Priority} = v.priority AND ({ID} + 0) > v.id"
		jobs = "SELECT j.*, v.place FROM gormlock_values AS v, LATERAL (" + first(" = v.value"+after) + ") AS j UNION ALL SELECT j.*, v.place FROM gormlock_values AS v, LATERAL (" + first(" IS NULL AND v.value IS NULL"+after) + ") AS j"
	}
	return v + " SELECT id, place FROM (" + jobs + ") AS free ORDER BY rank, priority DESC, id LIMIT " + strconv.Itoa(headsMost)
}
