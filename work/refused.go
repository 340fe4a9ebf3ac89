package work

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pgarray"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

const (
	// aside is how long a job is left out that the server refused to change, and asideEach how much longer for each other one: trying many
	// again must not take all of the time.
	aside     = 30 * time.Second
	asideEach = 10 * time.Millisecond
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
	until time.Time // it is left out
	named time.Time // in the log
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

// add leaves jobs out, and returns those that the log is to name.
func (r *refusals) add(found map[int64]error) (news []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[int64]refusal{}
	}
	now := time.Now()
	until := now.Add(aside + time.Duration(len(r.of))*asideEach)
	for id, err := range found {
		named := r.of[id].named
		if now.Sub(named) > namedAgain {
			named, news = now, append(news, id)
		}
		r.of[id] = refusal{until, named, err}
	}
	slices.Sort(news)
	return news
}

// isRefusal reports whether the server refused a statement because of a row. What is wrong with the connection, the server or the
// statement itself is no refusal, and a conflict with others passes.
func isRefusal(err error) bool {
	if err == nil {
		return false
	}
	var by *pgconn.PgError
	switch state := sqlstate.Of(err); {
	case state == "": // with TranslateError GORM keeps no state
		return errors.Is(err, gorm.ErrCheckConstraintViolated) || errors.Is(err, gorm.ErrForeignKeyViolated) || errors.Is(err, gorm.ErrDuplicatedKey)
	case sqlstate.InClass(err, sqlstate.ClassAccessOrName): // of a policy, or in a trigger
		return state == sqlstate.InsufficientPrivilege || errors.As(err, &by) && by.Where != ""
	default:
		return !slices.Contains([]string{sqlstate.ClassConnection, sqlstate.ClassResources, "25", "26", "28", "3D", "3F", "40", "57", "58"}, state[:min(2, len(state))])
	}
}

// sift makes a change of many jobs. If the server refuses that because of some of them, it makes the change for ever smaller parts, until
// it knows which these are. The log names them, and they are left out for a while. It returns how many there are.
func sift[T any](ctx context.Context, e *engine, r *refusals, list []T, id func(T) int64, change func(part []T) error) (int, error) {
	found := map[int64]error{}
	var parts func(list []T) error
	parts = func(list []T) error {
		if len(found) >= refusedMost || len(list) == 0 {
			return nil
		}
		err := change(list)
		switch {
		case !isRefusal(err):
			return err
		case len(list) == 1:
			found[id(list[0])] = err
			return nil
		}
		half := len(list) / 2
		if err := parts(list[:half]); err != nil {
			return err
		}
		return parts(list[half:])
	}
	err := parts(list)
	e.refuse(ctx, r, found)
	return len(found), err
}

// refuse leaves jobs out, and logs which.
func (e *engine) refuse(ctx context.Context, r *refusals, found map[int64]error) {
	if len(found) == 0 {
		return
	}
	if news := r.add(found); len(news) > 0 {
		e.log(ctx, "gormlock: work: the server refuses to %s jobs %d of %s, which are tried again later; the others go on. The error of job %d: %v",
			r.doing, news, e.t.name, news[0], found[news[0]])
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
	if !isRefusal(err) {
		return 0, err
	}
	ids, err := e.list(ctx, first)
	if err != nil {
		return 0, err
	}
	return sift(ctx, e, r, ids, same, func(part []int64) error {
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
