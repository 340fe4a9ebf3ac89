package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/internal/pgarray"
	"github.com/gormlock/gormlock/internal/sift"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

// refused are the refusals of each statement about many jobs.
type refused struct{ claim, renew, store, promote, takeOver refusals }

func newRefused(lease time.Duration) *refused {
	return &refused{
		refusals{doing: "claim"}, refusals{doing: "renew the leases of", most: lease / 4, soon: true}, refusals{doing: "store the outcomes of"},
		refusals{doing: "make ready"}, refusals{doing: "take over"},
	}
}

// left says which jobs could not be worked on.
func (r *refused) left(of string) error {
	return errors.Join(r.claim.error(of), r.promote.error(of), r.takeOver.error(of))
}

// searching reports whether there are suspects that were not tried yet, among the jobs that can be worked on.
func (r *refused) searching() bool {
	return r.claim.searching() || r.promote.searching() || r.takeOver.searching()
}

// search runs a round: it tries suspects for a while. change changes the jobs of a part, and returns how many it has changed. room returns how many
// jobs there is room for. search returns how many parts it has tried. The log names the jobs that were refused alone.
func (e *engine) search(ctx context.Context, r *refusals, room func() int, change func(part []int64) (int, error)) (parts int, err error) {
	began, found := time.Now(), map[int64]error{}
	for r.begin(); err == nil && (parts == 0 || time.Since(began) < max(r.most, roundMost)); parts++ {
		part := r.next(room())
		if len(part.ids) == 0 {
			break
		}
		n, started := 0, time.Now()
		failed := sift.ThroughConflicts(ctx, func() (err error) {
			n, err = change(part.ids)
			return err
		})
		if r.tried(part, n, failed, time.Since(started)) {
			found[part.ids[0]] = failed
		} else if !sqlstate.IsOfARow(failed) {
			err = failed
		}
	}
	e.refuse(ctx, r, found, time.Since(began))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended, r.took = time.Now(), time.Since(began)
	return parts, err
}

// refuse leaves the found jobs alone, and logs which they are. took is how long it took to find them.
func (e *engine) refuse(ctx context.Context, r *refusals, found map[int64]error, took time.Duration) {
	if len(found) == 0 {
		return
	}
	if news, othersGoOn := r.add(found, took); len(news) > 0 {
		others := "it has refused all that were tried"
		if othersGoOn {
			others = "the others go on"
		}
		e.log(ctx, "gormlock: work: the server refuses to %s jobs %d of %s, which are tried again later; %s. The error of job %d: %v",
			r.doing, news, e.t.name, others, news[0], found[news[0]])
	}
}

// manyJobs is a change of all jobs that match a condition.
type manyJobs struct {
	*refusals
	where, order string
	change       func(ctx context.Context, these string) (int, error) // its argument is a query that locks jobs and returns their IDs
	less         func(ctx context.Context, these string) (int, error) // does not write LastError; nil: change does not write it either
}

const lockThem = " FOR NO KEY UPDATE SKIP LOCKED"

// changeMany changes up to atOnce of the jobs, without the suspects, and reports whether there may be more. If the server refuses the statement,
// its jobs are suspects.
func (e *engine) changeMany(ctx context.Context, of manyJobs) (more bool, err error) {
	first := fmt.Sprintf("SELECT {ID} FROM {table} WHERE %s%s ORDER BY %s LIMIT %d", of.where, of.without(), of.order, atOnce) + lockThem
	began, n := time.Now(), 0
	err = sift.ThroughConflicts(ctx, func() (err error) {
		n, err = of.change(ctx, first)
		return err
	})
	if sqlstate.IsOfARow(err) {
		return e.suspectThese(ctx, of.refusals, err, time.Since(began), first)
	}
	of.pass(n)
	return n == atOnce, err
}

// suspectThese makes suspects of the jobs of a statement that was refused, and reports whether there are any. took is how long the statement took.
// The query locks the jobs as the statement did, so it returns none that the statement skipped.
func (e *engine) suspectThese(ctx context.Context, r *refusals, refusal error, took time.Duration, query string, args ...any) (found bool, err error) {
	ids, err := e.list(ctx, query, args...)
	r.suspect(ids, refusal, took)
	return len(ids) > 0, err
}

// changeSuspects tries to change the suspects among the jobs.
func (e *engine) changeSuspects(ctx context.Context, of manyJobs) error {
	_, err := e.search(ctx, of.refusals, func() int { return atOnce }, func(part []int64) (int, error) {
		these := "SELECT {ID} FROM {table} WHERE " + of.where + " AND {ID} = ANY('" + array(part) + "'::bigint[])" + lockThem
		n, err := of.change(ctx, these)
		if len(part) == 1 && of.less != nil && sqlstate.IsOfARow(err) && ofAValue(err) {
			changed, failed := of.less(ctx, these)
			if changed > 0 {
				e.log(ctx, "gormlock: work: the server refuses to %s job %d of %s with a text, so its LastError is what it was: %v", of.doing, part[0], e.t.name, err)
			}
			if failed == nil {
				return changed, nil
			}
		}
		return n, err
	})
	return err
}

// array writes IDs as an array literal.
func array(ids []int64) string {
	var list pgarray.Array
	for _, id := range ids {
		list.Int(id)
	}
	return list.String()
}
