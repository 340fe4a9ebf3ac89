package work

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gormlock/gormlock/internal/pgarray"
	"github.com/gormlock/gormlock/internal/sift"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

const (
	// asideFirst is how long a job is left out that the server refused to change. If it is refused again then, it is left out for twice as
	// long, up to asideMost.
	asideFirst = 4 * time.Second
	asideMost  = 30 * time.Second
	// asideEach and asideEachMost are by how much longer for each other one that is left out: for asideCost times what it took to find one.
	// Trying many again must not take all of the time.
	asideEach     = 10 * time.Millisecond
	asideEachMost = 100 * time.Millisecond
	asideCost     = 4
	// refusedMost is how many such jobs are looked for at once. The rest of their batch waits for the next statement.
	refusedMost = 100
	// namedAgain is when the log names such a job again.
	namedAgain = 10 * time.Minute
)

// refusals are the jobs that the server refuses to change in one way: by a CHECK, a trigger or a policy, or because a number cannot grow.
// One of them makes a statement about many jobs fail, so they are left out for a while.
type refusals struct {
	doing string // what is refused, for people

	mu sync.Mutex
	of map[int64]refusal
}

type refusal struct {
	out   time.Duration // for how long it is left out
	until time.Time     // when that ends
	named time.Time     // in the log
	err   error
}

// refused are the refusals of each statement about many jobs.
type refused struct{ claim, renew, store, promote, takeOver refusals }

func newRefused() *refused {
	return &refused{refusals{doing: "claim"}, refusals{doing: "renew the leases of"}, refusals{doing: "store the outcomes of"}, refusals{doing: "make ready"}, refusals{doing: "take over"}}
}

// left says which jobs could not be worked on.
func (r *refused) left(of string) error {
	return errors.Join(r.claim.error(of), r.promote.error(of), r.takeOver.error(of))
}

// now are the jobs that are left out now.
func (r *refusals) now() (ids []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.of) == 0 {
		return nil
	}
	now := time.Now()
	maps.DeleteFunc(r.of, func(_ int64, one refusal) bool { return now.After(one.until) && now.Sub(one.named) > namedAgain })
	for id, one := range r.of {
		if now.Before(one.until) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// without is the condition that leaves these jobs out, for a statement that goes past GORM: gormlock remembers the texts of its conditions.
func (r *refusals) without() string {
	if ids := r.now(); len(ids) > 0 {
		return " AND {ID} <> ALL('" + array(ids) + "'::bigint[])"
	}
	return ""
}

// error says which jobs were not changed.
func (r *refusals) error(of string) error {
	ids := r.now()
	if len(ids) == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Errorf("gormlock: work: the server refuses to %s jobs %d of %s: the first: %w", r.doing, ids, of, r.of[ids[0]].err)
}

// add leaves jobs out that were found in some time, and returns those that the log is to name.
func (r *refusals) add(found map[int64]error, took time.Duration) (news []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[int64]refusal{}
	}
	now := time.Now()
	others := 0
	for _, one := range r.of {
		if now.Before(one.until) {
			others++
		}
	}
	longer := min(max(asideEach, asideCost*took/time.Duration(len(found))), asideEachMost)
	for i, id := range slices.Sorted(maps.Keys(found)) {
		before, err := r.of[id], found[id]
		one := refusal{asideFirst, now, before.named, err}
		if now.Sub(before.until) < asideMost && !sqlstate.IsOfNoRow(err) {
			one.out = min(2*before.out, asideMost)
		}
		one.until = now.Add(one.out + time.Duration(others+i)*longer)
		if now.Sub(one.named) > namedAgain {
			one.named, news = now, append(news, id)
		}
		r.of[id] = one
	}
	return news
}

// sifted makes a change of many jobs. If the server refuses that because of some of them, it makes the change for ever smaller parts, until
// it knows which these are. The log names them, and they are left out for a while. It returns how many there are.
func sifted[T any](ctx context.Context, e *engine, r *refusals, list []T, id func(T) int64, change func(part []T) error) (int, error) {
	began, found, none := time.Now(), map[int64]error{}, len(list) > 1
	var failed error
	sift.Parts(ctx, list, change, func(part []T, err error) bool {
		if sqlstate.IsOfARow(err) {
			found[id(part[0])] = err
		} else {
			none, failed = false, err
		}
		return failed == nil && len(found) < refusedMost
	})
	e.refuse(ctx, r, found, time.Since(began), none)
	return len(found), failed
}

// refuse leaves jobs out that were found in some time, and logs which. none says that all were refused that were tried.
func (e *engine) refuse(ctx context.Context, r *refusals, found map[int64]error, took time.Duration, none bool) {
	if len(found) == 0 {
		return
	}
	if news := r.add(found, took); len(news) > 0 {
		others := "the others go on"
		if none {
			others = "it has refused all that were tried"
		}
		e.log(ctx, "gormlock: work: the server refuses to %s jobs %d of %s, which are tried again later; %s. The error of job %d: %v",
			r.doing, news, e.t.name, others, news[0], found[news[0]])
	}
}

func same(id int64) int64 { return id }

// changeSome changes up to atOnce of the jobs that a condition selects, and returns how many of them the server refuses to change. change
// gets a query that locks them and returns their IDs.
func (e *engine) changeSome(ctx context.Context, r *refusals, where, order string, change func(these string) error) (int, error) {
	const lock = " FOR NO KEY UPDATE SKIP LOCKED"
	from := "SELECT {ID} FROM {table} WHERE " + where
	first := fmt.Sprintf("%s%s ORDER BY %s LIMIT %d", from, r.without(), order, atOnce)
	err := change(first + lock)
	if !sqlstate.IsOfARow(err) {
		return 0, err
	}
	ids, err := e.list(ctx, first)
	if err != nil {
		return 0, err
	}
	return sifted(ctx, e, r, ids, same, func(part []int64) error {
		return change(from + " AND {ID} = ANY('" + array(part) + "'::bigint[])" + lock)
	})
}

// array writes IDs as an array of the server.
func array(ids []int64) string {
	var list pgarray.Array
	for _, id := range ids {
		list.Int(id)
	}
	return list.String()
}
