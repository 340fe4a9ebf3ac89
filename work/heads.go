package work

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/sift"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

// heads claims jobs by the values of a column, for OnePer and FairBy. A loose index scan lists the next jobs of many values, enough for many
// claims. Its cost grows with the number of values, and with the index entries of finished jobs that vacuum cannot remove. So between two such
// scans, FairBy continues each value where the last list ended, and OnePer continues with the jobs that follow jobs that have ended. A claim takes
// the next listed jobs that can still be claimed.
type heads struct {
	e *engine

	mu     sync.Mutex
	list   []int64 // in the order in which they are to be claimed
	whole  []int64 // the same list, including the jobs that were tried
	follow []int64 // used after list: each job came next of its value when a job ended
	open   bool    // there may be jobs that are in neither
	busy   bool    // a list is being made
	heard  bool    // there are hints of such jobs

	known   []int64 // the last jobs that were listed: with OnePer those without a value, with FairBy the last of each value
	left    bool    // the last scan found more values than a list has room for
	blocked bool    // the last scan found a job that waits for a younger one of its value: the jobs in follow must not overtake it
	vain    int     // how many lists in a row had no job that could be claimed
	cost    time.Duration
	listed  time.Time // when the last scan was made
}

const (
	// headsMost is how many jobs are listed at once.
	headsMost = 10_000
	// collisions is how often a claim is tried that conflicts with the claim of another worker.
	collisions = 5
	// vainClaims is how many claims in a row may get nothing before there is a pause, and vainLists is the same for lists. Then other workers are
	// faster, or something hides the jobs from claims.
	vainClaims, vainLists = 8, 2
)

func (s *heads) more() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open && s.vain < vainLists || !s.empty()
}

func (s *heads) empty() bool { return len(s.list)+len(s.follow) == 0 }

func (s *heads) hear(h hints) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l, hint := range h {
		if !hint.later && s.e.takes(l.queue) {
			s.open, s.heard, s.vain = true, true, 0
		}
	}
}

func (s *heads) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.heard, s.vain = true, true, 0
}

func (s *heads) ended(follow []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.follow = append(s.follow, follow...)
}

// look makes the next claim list the jobs again. With OnePer, while a list is being made or there are listed jobs to claim, it only sets open: next
// makes a new list after those.
func (s *heads) look(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.e.t.one == "" || !s.busy && !s.open && s.empty() {
		s.heard = true
	}
	if s.open = true; s.empty() {
		s.vain = 0
	}
	return nil
}

func (s *heads) claim(ctx context.Context, n int) (got []*item, err error) {
	for range vainClaims {
		ids, compare, err := s.next(ctx, n)
		if err != nil || len(ids) == 0 {
			return nil, err
		}
		r, began := &s.e.refused.claim, time.Now()
		if ids = r.rest(ids); len(ids) == 0 {
			continue
		}
		err = sift.ThroughConflicts(ctx, func() (err error) {
			got, err = s.claimThese(ctx, ids, compare)
			return err
		})
		if sqlstate.IsOfARow(err) {
			r.suspect(ids, err, time.Since(began))
			return nil, nil
		}
		r.pass(len(got))
		if len(got) > 0 || err != nil {
			s.gotSome()
			return got, err
		}
	}
	return nil, nil
}

func (s *heads) gotSome() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vain = 0
}

// claimSuspects compares the jobs with others, because a job that was the first of its value may no longer be. Jobs that it cannot claim are listed
// again.
func (s *heads) claimSuspects(ctx context.Context, ids []int64) ([]*item, error) {
	got, err := s.claimThese(ctx, ids, true)
	if len(got) > 0 {
		s.gotSome()
	}
	if err == nil && len(got) < len(ids) {
		s.again()
	}
	return got, err
}

// next takes up to n jobs from list, or from follow if list is empty. It makes a new list if both are empty or the last scan is more than five
// seconds ago. It also does if there are hints of other jobs and scans take less than a fifth of the time.
func (s *heads) next(ctx context.Context, n int) (ids []int64, compare bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := time.Since(s.listed)
	due := since > min(4*s.cost, behind)
	if s.open && s.empty() || (s.heard || s.blocked) && due || since > behind {
		if err := s.relist(ctx, due || len(s.known) == 0 || s.e.t.one == "" && len(s.known) == 1); err != nil {
			return nil, false, err
		}
	}
	from := &s.list
	if len(s.list) == 0 {
		from, compare = &s.follow, s.blocked
	}
	n = min(n, len(*from))
	ids, *from = (*from)[:n:n], (*from)[n:]
	if compare { // some may be refused, and then the jobs for which they wait can be listed
		s.open, s.heard = true, true
	}
	return ids, compare, nil
}

// relist makes a list, by a scan or from where the last list ended. The caller holds mu. relist unlocks it while it asks the server.
func (s *heads) relist(ctx context.Context, scan bool) error {
	known := s.known
	s.open = false
	if scan {
		s.heard, s.follow, known = false, nil, nil // the scan sees those that follow
	}
	s.busy = true
	s.mu.Unlock()
	began := time.Now()
	list, known, blocked, err := s.find(ctx, known)
	s.mu.Lock()
	s.busy = false
	if scan {
		s.cost, s.listed = time.Since(began), time.Now()
	}
	if err != nil {
		s.open, s.heard = true, s.heard || scan
		return err
	}
	full, another := len(list) >= headsMost, s.e.t.one == "" // with FairBy each value may have another job
	if scan {
		s.left, s.blocked = full || another && len(list) > 0, blocked
	}
	if s.known = known; scan && s.vain > 0 && !s.empty() {
		s.list = s.beside(list)
	} else {
		s.list, s.whole = list, list
	}
	if len(s.list) > 0 {
		s.vain++
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

// beside returns the new jobs of another list, and then the rest of the last list, from which no job could be claimed so far. Without this, each
// list would begin with the jobs that were tried without success.
func (s *heads) beside(list []int64) []int64 {
	tried := make(map[int64]bool, len(s.whole))
	for _, id := range s.whole {
		tried[id] = true
	}
	list = slices.DeleteFunc(list, func(id int64) bool { return tried[id] })
	s.whole = append(s.whole, list...)
	return append(list, s.list...)
}

// claimThese claims those of the jobs that can still be claimed, in their order.
//
// With OnePer each job was the first of its value when it was listed. Only a job that was committed late, or is requeued, can have come before it
// since, and the next scan lists that one. So the jobs are compared with others only if compare is set, or if the index refused a second running
// job of a value.
func (s *heads) claimThese(ctx context.Context, ids []int64, compare bool) (got []*item, err error) {
	of, queues := s.e.inQueues()
	args := append([]any{array(ids)}, of...)
	text := "{ID} = ANY(?::bigint[]) AND {State} || '' = 'ready' AND {RunAt} <= now()" + strings.Replace(queues, "$1", "?", 1) // this form makes the plan find each job by its key, and not by the index of ready jobs
	for range collisions {
		where := text
		if one := s.e.t.one; one != "" && compare {
			for _, other := range []string{"gormlock_other.{ID} < {table}.{ID} AND " + s.e.t.waiting() + "{live}", "gormlock_other.{State} = 'running'"} {
				where += " AND NOT EXISTS (SELECT FROM {table} AS gormlock_other WHERE gormlock_other." + one + " = {table}." + one + " AND " + other + each
			}
		}
		got, err = s.e.claim(ctx, power(len(ids)), func(q *gorm.DB) *gorm.DB { return q.Where(s.e.t.sql(where), args...) })
		if compare = s.collides(err); !compare {
			break
		}
	}
	if compare { // other workers are faster
		s.again()
		err = nil
	}
	place := make(map[int64]int, len(ids))
	for i, id := range ids {
		place[id] = i
	}
	slices.SortFunc(got, func(a, b *item) int { return place[a.id] - place[b.id] })
	return got, err
}

// collides reports whether the index of OnePer refused a second running job of a value.
func (s *heads) collides(err error) bool {
	if s.e.t.one == "" || !sqlstate.Is(err, sqlstate.UniqueViolation) {
		return false
	}
	var by *pgconn.PgError
	return !errors.As(err, &by) || by.ConstraintName == s.e.t.index("one_running_"+s.e.one)
}

// each ends a NOT EXISTS. OFFSET 0 makes the server look up each row by its value instead of making a join. By its statistics hardly a job runs,
// and a join would compare each row with all running ones.
const each = " OFFSET 0)"

// power returns the least power of two that is not less than n. Each different limit is another statement for the server.
func power(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}
