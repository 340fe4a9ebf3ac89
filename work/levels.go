package work

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pgarray"
	"github.com/gormlock/gormlock/internal/sift"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

// source finds jobs that can be claimed.
type source interface {
	// claim claims up to n jobs. If it returns fewer and knows of no more, more is false until hear or again is called. If the server refuses a
	// claim, its jobs are suspects.
	claim(ctx context.Context, n int) ([]*item, error)
	// claimSuspects claims those of the jobs that can be claimed.
	claimSuspects(ctx context.Context, ids []int64) ([]*item, error)
	// more reports whether there may be more jobs.
	more() bool
	// hear takes hints. If the hints are nil, call look instead.
	hear(h hints)
	// again makes claim ask the server again where it found nothing before.
	again()
	// ended tells the source which jobs follow the jobs that have ended, with OnePer.
	ended(follow []int64)
	// look looks for jobs that claims have passed.
	look(ctx context.Context) error
}

// levels claims by priority and ID. For each level it remembers the position of the last claim. P31: the index has an entry for each job that was
// claimed since the last vacuum, so a claim from the beginning would walk over all of them.
type levels struct {
	e  *engine
	mu sync.Mutex
	at map[level]*position
}

// position is how far the claims of a level have come.
type position struct {
	level
	after int64 // the next claim takes jobs with greater IDs
	more  bool  // there may be more jobs
	moved int   // how often hints have changed it
}

func (s *levels) more() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.at {
		if p.more {
			return true
		}
	}
	return false
}

func (s *levels) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.at {
		p.more = true
	}
}

func (s *levels) ended([]int64) {}

func (s *levels) hear(h hints) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l, hint := range h {
		if !hint.later && s.e.takes(l.queue) {
			s.from(l, hint.from)
		}
	}
}

// from notes that the level has, or had, a job with this ID, so claims start there.
func (s *levels) from(l level, id int64) {
	p := s.at[l]
	if p == nil {
		p = &position{level: l, after: id - 1}
		s.at[l] = p
	}
	p.after, p.more = min(p.after, id-1), true
	p.moved++
}

// share is how many jobs a claim takes from one level.
type share struct {
	*position
	after int64
	moved int
	n     int
}

func (s *levels) claim(ctx context.Context, n int) ([]*item, error) {
	shares, err := s.shares(ctx, n)
	var all []*item
	for _, each := range shares {
		if err != nil {
			break
		}
		var got []*item
		var refused bool
		got, refused, err = s.claimOf(ctx, each)
		if all = append(all, got...); refused {
			break
		}
	}
	inOrder(all)
	return all, err
}

// inOrder sorts jobs by priority and ID.
func inOrder(items []*item) {
	slices.SortStableFunc(items, func(a, b *item) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.id, b.id))
	})
}

// shares returns how many jobs to take from each level, so that together they are the first n jobs of all levels. If there are several levels, it
// asks the server, without locking.
func (s *levels) shares(ctx context.Context, n int) ([]share, error) {
	s.mu.Lock()
	var open []share
	for _, p := range s.at {
		if p.more {
			open = append(open, share{p, p.after, p.moved, n})
		}
	}
	s.mu.Unlock()
	if len(open) < 2 {
		return open, nil
	}
	slices.SortFunc(open, func(a, b share) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.queue, b.queue))
	})
	var queues, priorities, after pgarray.Array
	for _, o := range open {
		queues.Text(o.queue)
		priorities.Int(int64(o.priority))
		after.Int(o.after)
	}
	without := s.e.refused.claim.without()
	rows, err := s.e.db.QueryContext(ctx, s.e.t.sql(`SELECT place, count(*), min(id) FROM (
		SELECT l.place, l.priority, j.id FROM unnest($1::text[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS l(queue, priority, after, place), LATERAL (
			SELECT ({ID} + 0) AS id FROM {table} AS t WHERE {State} = 'ready' AND {Queue} = l.queue AND {Priority} = l.priority AND ({ID} + 0) > l.after
			AND {RunAt} <= now(){live}`+without+` ORDER BY ({ID} + 0) LIMIT $4) AS j ORDER BY l.priority DESC, j.id LIMIT $4) AS first GROUP BY place ORDER BY place`),
		queues.String(), priorities.String(), after.String(), n)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	total, shares := 0, []share(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	given := map[int]bool{}
	for rows.Next() {
		var place, count int
		var first int64
		if err := rows.Scan(&place, &count, &first); err != nil {
			return nil, err
		}
		o := open[place-1]
		given[place-1] = true
		o.n, o.after, total = count, first-1, total+count
		shares = append(shares, o)
	}
	if total < n {
		for i, o := range open {
			if !given[i] && o.position.moved == o.moved {
				o.more = false
			}
		}
	}
	return shares, rows.Err()
}

// claimOf claims from one level, starting at its position, and reports whether the server refused the claim.
func (s *levels) claimOf(ctx context.Context, o share) (got []*item, refused bool, err error) {
	e, r, began := s.e, &s.e.refused.claim, time.Now()
	bad := r.now()
	err = sift.ThroughConflicts(ctx, func() (err error) {
		got, err = e.claim(ctx, o.n, func(q *gorm.DB) *gorm.DB {
			if len(bad) > 0 {
				q = q.Where(e.t.sql("{ID} <> ALL(?::bigint[])"), array(bad))
			}
			// The index is on "id + 0", so no plan walks the primary key over all done jobs.
			return q.Where(e.t.sql("{State} = 'ready' AND {Queue} = ? AND {Priority} = ? AND ({ID} + 0) > ? AND {RunAt} <= now()"), o.queue, o.priority, o.after).
				Order(e.t.sql("({ID} + 0)"))
		})
		return err
	})
	if sqlstate.IsOfARow(err) {
		found, err := e.suspectThese(ctx, r, err, time.Since(began), "SELECT {ID} FROM {table} WHERE {State} = 'ready' AND {Queue} = $1 AND {Priority} = $2 AND ({ID} + 0) > $3 AND {RunAt} <= now(){live}"+
			r.without()+" ORDER BY ({ID} + 0) LIMIT $4"+lockThem, o.queue, o.priority, o.after, o.n)
		if !found && err == nil { // the server refuses the statement even though there is nothing to claim
			s.nothing(o)
		}
		return nil, true, err
	}
	r.pass(len(got))
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.position.moved == o.moved && err == nil {
		o.more = len(got) >= o.n
		o.position.after = max(o.position.after, o.after)
		for _, it := range got {
			o.position.after = max(o.position.after, it.id)
		}
	}
	return got, false, err
}

// nothing notes that a level has no jobs to claim.
func (s *levels) nothing(o share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.position.moved == o.moved {
		o.more = false
	}
}

func (s *levels) claimSuspects(ctx context.Context, ids []int64) ([]*item, error) {
	args, queues := s.e.inQueues()
	got, err := s.e.claim(ctx, power(len(ids)), func(q *gorm.DB) *gorm.DB {
		return q.Where(s.e.t.sql("{ID} = ANY(?::bigint[]) AND {State} || '' = 'ready' AND {RunAt} <= now()"+strings.Replace(queues, "$1", "?", 1)), append([]any{array(ids)}, args...)...)
	})
	inOrder(got)
	return got, err
}

// look finds the first ready job of each level, and sets the position back if claims have passed that job. Its cost grows with the number of
// levels, and with the dead index entries before the first ready jobs.
func (s *levels) look(ctx context.Context) error {
	s.mu.Lock()
	moved := map[level]int{}
	for l, p := range s.at {
		moved[l] = p.moved
	}
	s.mu.Unlock()
	first := "SELECT {Queue} AS queue, {Priority} AS priority, ({ID} + 0) AS id FROM {table} AS t WHERE {State} = 'ready' AND {RunAt} <= now(){live}" + s.e.refused.claim.without()
	const order = " ORDER BY {Queue}, {Priority} DESC, ({ID} + 0) LIMIT 1"
	queues := `WITH RECURSIVE gormlock_queues AS ((` + first + order + `) UNION ALL SELECT n.* FROM gormlock_queues AS q, LATERAL (` + first + ` AND {Queue} > q.queue` + order + `) AS n) `
	var args []any
	if s.e.queues != nil {
		var names pgarray.Array
		for _, name := range s.e.queues {
			names.Text(name)
		}
		args = append(args, names.String())
		queues = `WITH gormlock_queues AS (SELECT n.* FROM unnest($1::text[]) AS name(queue), LATERAL (` + first + ` AND {Queue} = name.queue` + order + `) AS n) `
	}
	rows, err := s.e.db.QueryContext(ctx, s.e.t.sql(queues+`SELECT l.queue, l.priority, l.id FROM gormlock_queues AS q, LATERAL (WITH RECURSIVE gormlock_levels AS (
		SELECT q.queue, q.priority, q.id UNION ALL SELECT n.* FROM gormlock_levels AS p, LATERAL (`+first+` AND {Queue} = p.queue AND {Priority} < p.priority`+order+`) AS n
		) SELECT * FROM gormlock_levels) AS l`), args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	s.mu.Lock()
	defer s.mu.Unlock()
	for rows.Next() {
		var l level
		var id int64
		if err := rows.Scan(&l.queue, &l.priority, &id); err != nil {
			return err
		}
		if p := s.at[l]; p == nil || id <= p.after {
			s.from(l, id)
		} else {
			p.more = true
			delete(moved, l)
		}
	}
	for l, n := range moved {
		if p := s.at[l]; p.moved == n && !p.more { // there is no ready job, and no hint of one
			delete(s.at, l)
		}
	}
	return rows.Err()
}
