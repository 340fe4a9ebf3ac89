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
	// asideFirst is how long a job is left alone that the server refused to change. If it is refused again then, it is left alone for twice
	// as long, up to asideMost.
	asideFirst = 4 * time.Second
	asideMost  = 30 * time.Second
	// asideEach and asideEachMost are by how much longer for each other one that is left alone: for asideCost times what it took to find
	// one. Trying many again must not take all of the time.
	asideEach     = 10 * time.Millisecond
	asideEachMost = 100 * time.Millisecond
	asideCost     = 4
	// namedAgain is when the log names such a job again.
	namedAgain = 10 * time.Minute
	// roundMost is how long suspects are tried before the others have their turn. The last statement may take longer.
	roundMost = time.Second
)

// refusals are the jobs that the server refuses to change in one way: by a CHECK, a trigger or a policy, or because a number cannot grow.
// One of them makes a statement about many jobs fail. So all that such a statement was about are suspects: the statements about many leave
// them out, and they are tried apart, in ever smaller parts, until it is known which are refused alone. Those are left alone for a while,
// and are suspects again when that is over. What is not tried in one round is in the next one.
type refusals struct {
	doing string        // what is refused, for people
	most  time.Duration // of a round; 0: roundMost
	soon  bool          // each round tries again those that were refused alone

	mu       sync.Mutex
	of       map[int64]refusal
	parts    []part    // of the suspects, in the order in which they are to be tried: the larger ones first
	together time.Time // when all that are left alone are tried as one, if any; zero: never
	passed   bool      // the server has accepted a change since jobs were left alone last
	others   bool      // since there are suspects
	met      int       // how many statements about many the server has refused
	ended    time.Time // when the last round did
	took     time.Duration
}

// part are jobs that are tried in one statement.
type part struct {
	ids   []int64
	early bool // they are left alone, and tried to see whether the server accepts them all by now
}

type refusal struct {
	is    standing
	out   time.Duration // for how long it is left alone
	until time.Time     // when that ends
	named time.Time     // in the log
	err   error
}

// standing is how the server takes to a job.
type standing int

const (
	accepted standing = iota // as far as is known
	suspect                  // in a part
	aside                    // refused alone, and left alone for a while
)

// searching reports whether there are suspects that were not tried yet.
func (r *refusals) searching() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.parts) > 0
}

// now are the jobs that statements about many leave out.
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

// rest are those of some jobs that statements about many do not leave out.
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

// isAside reports whether the server has refused this job alone.
func (r *refusals) isAside(id int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[id].is == aside
}

// pass notes that the server has changed n jobs that were no suspects.
func (r *refusals) pass(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > 0 {
		r.passed, r.others = true, true
	}
}

// suspect notes that the server has refused a statement about these jobs, in some time.
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

// divide makes smaller parts of one that was refused in some time.
func (r *refusals) divide(ids []int64, took time.Duration) {
	if len(ids) == 0 {
		return
	}
	for _, ids := range sift.Divide(ids, took) {
		r.parts = append(r.parts, part{ids: ids})
	}
}

// begin begins a round: those are suspects again that were left alone for long enough, as one part, because what has cured one of them may
// have cured all. If the server has accepted nothing since, it may refuse all jobs for a while: then the others are tried too, as another.
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

// again makes suspects of those that are left alone.
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

// nextTogether is when all are tried as one: again and again while the server accepts nothing, and once more after that.
func (r *refusals) nextTogether(now time.Time) {
	if r.together = now.Add(asideFirst); r.passed {
		r.together = time.Time{}
	}
}

// hurry makes suspects of all that are left alone.
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

// due is how long it is until there is something to try, if ever.
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

// meets is how many statements about many the server has refused so far.
func (r *refusals) meets() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.met
}

// rested reports whether the others have had as much time as the last round took.
func (r *refusals) rested() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.ended) >= r.took
}

// next takes the next part, of at most some jobs.
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

// tried notes how it went to change n jobs of a part, and reports whether one job alone was refused.
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
	case sqlstate.IsOfARow(err) && p.early: // nor need the rest be tried
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

// add leaves jobs alone that were found in some time, and returns those that the log is to name.
func (r *refusals) add(found map[int64]error, took time.Duration) (news []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[int64]refusal{}
	}
	now := time.Now()
	others := 0
	for _, one := range r.of {
		if one.is == aside {
			others++
		}
	}
	longer := min(max(asideEach, asideCost*took/time.Duration(len(found))), asideEachMost)
	for i, id := range slices.Sorted(maps.Keys(found)) {
		before, err := r.of[id], found[id]
		one := refusal{aside, asideFirst, now, before.named, err}
		if now.Sub(before.until) < asideMost && !sqlstate.IsOfNoRow(err) {
			one.out = min(2*before.out, asideMost)
		}
		one.until = now.Add(one.out + time.Duration(others+i)*longer)
		if now.Sub(one.named) > namedAgain {
			one.named, news = now, append(news, id)
		}
		r.of[id] = one
	}
	if !r.passed && r.together.IsZero() {
		r.together = now.Add(asideFirst)
	}
	r.passed = false
	return news
}
