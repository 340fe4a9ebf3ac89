package work

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gormlock/gormlock/internal/sift"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

const (
	// asideFirst is for how long a refused job is left alone. If it is refused again, this time doubles, up to asideMost.
	asideFirst = 4 * time.Second
	asideMost  = 30 * time.Second
	// Each other job that is left alone makes that time longer, by asideCost times what it took to find one job, but at least by asideEach and at
	// most by asideEachMost. So trying many jobs again does not take all of the time.
	asideEach     = 10 * time.Millisecond
	asideEachMost = 100 * time.Millisecond
	asideCost     = 4
	// namedAgain is after how long the log names such a job again.
	namedAgain = 10 * time.Minute
	// roundMost is how long suspects are tried before the other jobs have their turn. The last statement may take longer.
	roundMost = time.Second
)

// refusals are the jobs that the server refuses to change in one way: by a CHECK, a trigger or a policy, or because a number cannot grow. One such
// job makes a statement about many jobs fail. Then all jobs of the statement are suspects. Statements about many jobs leave suspects out. They are
// tried apart, in smaller and smaller parts, until it is known which jobs are refused alone. Those are left alone for a while, and then are
// suspects again. Parts that are not tried in one round are tried in the next.
type refusals struct {
	doing string        // what is refused, for people
	most  time.Duration // how long a round may take; 0: roundMost
	soon  bool          // each round tries the jobs again that were refused alone

	mu       sync.Mutex
	of       map[int64]refusal
	parts    []part    // of the suspects, in the order in which they are tried: larger ones first
	together time.Time // when all jobs that are left alone are tried as one part; zero: never
	passed   bool      // the server has accepted a change since the last time that jobs were left alone
	others   bool      // the server has accepted changes of other jobs since there are suspects
	met      int       // how many statements about many jobs the server has refused
	ended    time.Time // when the last round ended
	took     time.Duration
}

// part holds jobs that are tried in one statement.
type part struct {
	ids   []int64
	early bool // they are still left alone, and tried only to see whether the server accepts all of them by now
}

type refusal struct {
	is    standing
	out   time.Duration // for how long the job is left alone
	until time.Time     // when that ends
	named time.Time     // when the log last named the job
	err   error
}

// standing says whether the server accepts changes of a job.
type standing int

const (
	accepted standing = iota // or not known to be refused
	suspect                  // in a part
	aside                    // refused alone, so left alone for a while
)

// searching reports whether there are suspects that were not tried yet.
func (r *refusals) searching() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.parts) > 0
}

// now returns the jobs that statements about many jobs leave out.
func (r *refusals) now() (ids []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, one := range r.of {
		if one.is != accepted {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// rest returns ids without the jobs that statements about many jobs leave out.
func (r *refusals) rest(ids []int64) []int64 {
	bad := r.now()
	if len(bad) == 0 {
		return ids
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id int64) bool {
		_, is := slices.BinarySearch(bad, id)
		return is
	})
}

// without is the condition that leaves these jobs out, as text for statements that bypass GORM. A GORM condition must not contain the IDs, because
// gormlock caches the texts of conditions.
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

// isAside reports whether the server has refused this job alone.
func (r *refusals) isAside(id int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[id].is == aside
}

// pass notes that the server has changed n jobs that were not suspects.
func (r *refusals) pass(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > 0 {
		r.passed, r.others = true, true
	}
}

// suspect notes that the server has refused a statement about these jobs, which took this long.
func (r *refusals) suspect(ids []int64, err error, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[int64]refusal{}
	}
	known := false
	for _, one := range r.of {
		known = known || one.is != accepted
	}
	r.met++
	if !known {
		r.others, r.together = false, time.Time{}
	}
	for _, id := range ids {
		r.set(id, suspect, err)
	}
	r.divide(ids, took)
}

func (r *refusals) set(id int64, is standing, err error) {
	one := r.of[id]
	if one.is = is; err != nil {
		one.err = err
	}
	r.of[id] = one
}

// divide adds smaller parts for a part that was refused. took is the duration of its statement.
func (r *refusals) divide(ids []int64, took time.Duration) {
	if len(ids) == 0 {
		return
	}
	for _, ids := range sift.Divide(ids, took) {
		r.parts = append(r.parts, part{ids: ids})
	}
}

// begin begins a round. Jobs that were left alone for long enough are suspects again. They are one part, because what has cured one of them may
// have cured all. If the server has accepted nothing since, it may refuse all jobs for a while. Then the jobs that are still left alone are tried
// too, as another part.
func (r *refusals) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(r.of, func(_ int64, one refusal) bool { return one.is == accepted && now.Sub(one.named) > namedAgain })
	var due, early []int64
	for id, one := range r.of {
		switch {
		case one.is != aside:
		case r.soon || !now.Before(one.until):
			due = append(due, id)
		default:
			early = append(early, id)
		}
	}
	r.again(due, false)
	if !r.together.IsZero() && !now.Before(r.together) {
		r.nextTogether(now)
		r.again(early, true)
	}
}

// again makes suspects of jobs that are left alone.
func (r *refusals) again(ids []int64, early bool) {
	if len(ids) == 0 {
		return
	}
	slices.Sort(ids)
	for _, id := range ids {
		r.set(id, suspect, nil)
	}
	r.parts = append(r.parts, part{ids, early})
}

// nextTogether sets when all jobs that are left alone are tried as one part: again and again while the server accepts nothing, and once more when
// it accepts something.
func (r *refusals) nextTogether(now time.Time) {
	if r.together = now.Add(asideFirst); r.passed {
		r.together = time.Time{}
	}
}

// hurry makes suspects of all jobs that are left alone.
func (r *refusals) hurry() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []int64
	for id, one := range r.of {
		if one.is == aside {
			all = append(all, id)
		}
	}
	r.again(all, false)
}

// due returns how long it is until there is something to try. The second result is false if there will be nothing.
func (r *refusals) due() (in time.Duration, is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.parts) > 0 {
		return 0, true
	}
	first := r.together
	for _, one := range r.of {
		if one.is == aside {
			if is = true; first.IsZero() || one.until.Before(first) {
				first = one.until
			}
		}
	}
	return max(time.Until(first), 0), is
}

// meets returns how many statements about many jobs the server has refused so far.
func (r *refusals) meets() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.met
}

// rested reports whether the other jobs have had as much time as the last round took.
func (r *refusals) rested() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.ended) >= r.took
}

// next removes and returns the next part, or its first most jobs.
func (r *refusals) next(most int) (next part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.parts) == 0 || most <= 0 {
		return part{}
	}
	first := &r.parts[0]
	if next = *first; len(first.ids) > most {
		next.ids, first.ids = next.ids[:most:most], first.ids[most:]
		return next
	}
	r.parts = r.parts[1:]
	return next
}

// tried notes the result of changing n jobs of a part, and reports whether the part is a single job that was refused.
func (r *refusals) tried(p part, n int, err error, took time.Duration) (found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		for _, id := range p.ids {
			if one := r.of[id]; one.named.IsZero() {
				delete(r.of, id)
			} else {
				r.set(id, accepted, nil)
			}
		}
		r.passed, r.others = r.passed || n > 0, r.others || n > 0
	case sqlstate.IsOfARow(err) && p.early: // the other early parts need not be tried either
		r.parts = slices.DeleteFunc(append(r.parts, p), func(p part) bool {
			for _, id := range p.ids {
				if p.early {
					r.set(id, aside, err)
				}
			}
			return p.early
		})
	case sqlstate.IsOfARow(err) && len(p.ids) == 1:
		return true
	case sqlstate.IsOfARow(err):
		r.divide(p.ids, took)
	default:
		r.parts = append(r.parts, p)
	}
	return false
}

// add leaves found jobs alone. It returns those for the log, and whether others go on. took is how long it took to find them.
func (r *refusals) add(found map[int64]error, took time.Duration) (news []int64, othersGoOn bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[int64]refusal{}
	}
	now := time.Now()
	left := 0
	for _, one := range r.of {
		if one.is == aside {
			left++
		}
	}
	longer := min(max(asideEach, asideCost*took/time.Duration(len(found))), asideEachMost)
	for i, id := range slices.Sorted(maps.Keys(found)) {
		before, err := r.of[id], found[id]
		one := refusal{aside, asideFirst, now, before.named, err}
		if now.Sub(before.until) < asideMost && !sqlstate.IsOfNoRow(err) {
			one.out = min(2*before.out, asideMost)
		}
		one.until = now.Add(one.out + time.Duration(left+i)*longer)
		if now.Sub(one.named) > namedAgain {
			one.named, news = now, append(news, id)
		}
		r.of[id] = one
	}
	if !r.passed && r.together.IsZero() {
		r.together = now.Add(asideFirst)
	}
	r.passed = false
	return news, r.others
}
