package look

import (
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/lockkey"
)

// filter chooses what ls and watch show.
type filter struct {
	waiting     bool
	key         string
	pid         int
	application string
	user        string
	kind        string
	limit       int
}

func (f *filter) declare(set *flag.FlagSet) {
	set.BoolVar(&f.waiting, "waiting", false, "only requests that wait, and what they wait for")
	set.StringVar(&f.key, "key", "", "only locks on this `KEY`: a name as it is shown (invoice/42, \"in voice\"/42), with *\n"+
		"for anything (invoice/*), or an id; the name is hashed too, so a lock is found whose name nobody noted")
	set.IntVar(&f.pid, "pid", 0, "only what this `PID` holds or waits for")
	set.StringVar(&f.application, "app", "", "only locks of this `APPLICATION` or owner, with * for anything")
	set.StringVar(&f.user, "user", "", "only locks of this `ROLE`")
	set.StringVar(&f.kind, "kind", "", "only locks on this `KIND` of thing, a word of pg_locks.locktype: advisory,\ntransactionid, tuple, relation, ...")
	set.IntVar(&f.limit, "limit", 100, "at most `N` locks, those that matter first; 0 for all")
}

func (f *filter) check() error {
	switch {
	case f.limit < 0:
		return fmt.Errorf("--limit %d is negative", f.limit)
	case f.pid < 0:
		return fmt.Errorf("--pid %d is negative", f.pid)
	}
	_, err := keysOf(f.key)
	return err
}

// all reports whether nothing is filtered.
func (f *filter) all() bool {
	return !f.waiting && f.key == "" && f.pid == 0 && f.application == "" && f.user == "" && f.kind == ""
}

// options are the options of the snapshot. If this filter leaves something out, the snapshot must not.
func (f *filter) options() []inspect.Option {
	limit := f.limit
	switch {
	case limit == 0, !f.all() && !f.waiting:
		limit = math.MaxInt32
	case f.waiting:
		limit = server.Matters
	}
	opts := []inspect.Option{inspect.Limit(limit)}
	if keys, err := keysOf(f.key); err == nil {
		opts = append(opts, inspect.Known(keys...))
	}
	return opts
}

// apply removes from v what must not be shown.
func (f *filter) apply(v *inspect.View) {
	if f.all() {
		return
	}
	if n := len(v.Locks); n == 0 || v.Locks[n-1].Granted && v.Locks[n-1].Waiters == 0 {
		v.Totals.Cut = 0 // the snapshot cuts at the end, so that part was not asked for
	}
	v.Locks = slices.DeleteFunc(v.Locks, func(l inspect.Lock) bool { return !f.shows(&l) })
	if f.limit > 0 && len(v.Locks) > f.limit {
		v.Totals.Cut += len(v.Locks) - f.limit
		v.Locks = v.Locks[:f.limit]
	}
	v.Leases = slices.DeleteFunc(v.Leases, func(l inspect.Lease) bool { return !f.showsRow(l.Space%16, l.ID, l.Key, l.Owner) })
	v.Schedules = slices.DeleteFunc(v.Schedules, func(s inspect.Schedule) bool { return !f.showsRow(s.Space, s.ID, s.Key, s.Owner) })
	v.Sessions = slices.DeleteFunc(v.Sessions, func(s *inspect.Session) bool {
		return !slices.ContainsFunc(v.Locks, func(l inspect.Lock) bool { return l.PID == s.PID || slices.Contains(l.Blockers, s.PID) })
	})
}

func (f *filter) shows(l *inspect.Lock) bool {
	switch {
	case f.waiting && l.Granted && l.Waiters == 0,
		f.pid != 0 && l.PID != f.pid,
		f.key != "" && !f.isKey(l),
		f.application != "" && !like(f.application, l.Application) && !like(f.application, l.Owner),
		f.user != "" && f.user != l.User,
		f.kind != "" && f.kind != string(l.Kind):
		return false
	}
	return true
}

// showsRow reports whether to show a lease or a schedule, which is not a lock of a session. A slot belongs to its key.
func (f *filter) showsRow(space int16, id int64, key, owner string) bool {
	switch {
	case f.waiting, f.pid != 0, f.user != "", f.kind != "",
		f.key != "" && !f.isID(space, id) && !f.isName(key),
		f.application != "" && !like(f.application, owner):
		return false
	}
	return true
}

func (f *filter) isKey(l *inspect.Lock) bool {
	return l.Kind == inspect.Advisory && f.isID(l.Space, l.ID) || f.isName(l.Key) || l.Name != "" && f.isName(l.Name)
}

// isName reports whether --key is this name, in full or as it is shown.
func (f *filter) isName(name string) bool {
	return like(f.key, name) || like(f.key, terminal.OneLine(name))
}

// isID reports whether --key is this id, or a name with this id.
func (f *filter) isID(space int16, id int64) bool {
	keys, _ := keysOf(f.key) // check has reported errors already
	shown := lockkey.Int64(id)
	if space == 2 {
		shown = lockkey.Pair(int32(id>>32), int32(id))
	}
	return slices.ContainsFunc(keys, func(k lockkey.Key) bool { return lockkey.Compare(k, shown) == 0 })
}

// like reports whether text matches pattern, in which * matches anything.
func like(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = after
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}
