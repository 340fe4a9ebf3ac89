package memory

import (
	"cmp"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
)

// strays are structs of transactions whose ctx has ended: the server has rolled back, or is about to, and the program has called neither Commit nor
// Rollback, which would restore them. Only the goroutine that next uses such a struct may touch it.
var strays struct {
	count    atomic.Int64
	mu       sync.Mutex
	at       map[placeOf]*strayed
	sweeping bool
}

// strayed is what is known about a place. The journal of the transaction keeps the struct alive until the journal is forgotten. After that only the
// program does, and when the struct is gone, another one may be at its address.
type strayed struct {
	all       []stray
	forgotten bool
	alive     weak.Pointer[byte] // set when the transaction is forgotten
}

// stray is a struct of an ended transaction.
type stray struct {
	in   *ended              // until the transaction is forgotten
	then weak.Pointer[ended] // after that; nil when it is gone
	use  use
	as   held // the struct when it was met
	done bool // the program has used it since, and its transaction may still be rolled back

	model *model.Model // nil: it is not known
}

// use says what a transaction did with a struct: a combination of these, or none if only its place is known.
type use int

const (
	wrote use = 1 << iota
	read
	met // nothing of it is undone
)

// sweepEvery is how often forgotten strays are removed whose structs are gone.
const sweepEvery = time.Minute

func whereIs(row reflect.Value) (placeOf, bool) {
	if !row.IsValid() || !row.CanAddr() {
		return placeOf{}, false
	}
	return placeOf{row.Type(), row.Addr().Pointer()}, true
}

// HasStrays reports whether there are any strays.
func HasStrays() bool { return strays.count.Load() > 0 }

// Stray keeps the structs until they are used next. It does not read them, because their goroutine may be using them.
func (s *Structs) Stray(all *journal.Astray) {
	if s.before == nil || s.After == nil {
		return
	}
	if !all.Undone {
		for i := range s.Count {
			StraySeen(all, s.model, s.In, s.Row(i))
		}
		return
	}
	e := endedIn(all)
	e.add(endedStep{of: s})
	for i := range s.Count {
		addStray(s.Row(i), stray{in: e, use: wrote, model: s.model})
	}
}

// StrayRead does the same for structs that were read.
func StrayRead(all *journal.Astray, rows ...reflect.Value) {
	e, one := endedIn(all), stray{}
	if one.in = e; all.Undone {
		one.use = read
	}
	for _, row := range rows {
		addStray(row, one)
	}
}

// StrayRead does the same for the noted states, wherever the program has copied the structs.
func (n *Noted) StrayRead(all *journal.Astray) { n.stray(all, endedStep{read: n}, read) }

// StrayLate does the same for all structs of a type: some were read, and nobody knows which.
func StrayLate(all *journal.Astray, of reflect.Type) {
	e := endedIn(all)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.late = append(e.late, of)
}

// StraySeen does the same for a struct of which only the place is known.
func StraySeen(all *journal.Astray, m *model.Model, in Table, row reflect.Value) {
	if row.IsValid() && row.CanAddr() && row.Type() == m.Schema.ModelType {
		e := endedIn(all)
		e.add(endedStep{model: m, in: in, row: row})
		addStray(row, stray{in: e, model: m})
	}
}

// Stray does the same for structs that were only met. If one differs by then, the program has moved it there.
func (n *Noted) Stray(all *journal.Astray) { n.stray(all, endedStep{met: n}, met) }

func (n *Noted) stray(all *journal.Astray, step endedStep, how use) {
	if !all.Undone {
		for _, one := range n.all {
			StraySeen(all, one.kind.model, one.kind.in, one.row)
		}
		return
	}
	e := endedIn(all)
	e.add(step)
	for _, one := range n.all {
		addStray(one.row, stray{in: e, use: how, as: one.is, model: one.kind.model})
	}
}

// Loosen lets go of the structs, like Structs.Loosen.
func (n *Noted) Loosen() {
	for i := range slices.Backward(n.all) {
		loosen(n.all[i].row)
	}
}

// ForgetStrays forgets the structs.
func (n *Noted) ForgetStrays() {
	for i := 0; i < len(n.all) && HasStrays(); i++ {
		ForgetStray(n.all[i].row)
	}
}

func addStray(row reflect.Value, one stray) {
	at, ok := whereIs(row)
	if !ok {
		return
	}
	strays.mu.Lock()
	defer strays.mu.Unlock()
	known := strays.at[at]
	if known == nil || known.hasGone() {
		if strays.at == nil {
			strays.at = map[placeOf]*strayed{}
		}
		if known == nil {
			strays.count.Add(1)
		}
		known = &strayed{}
		strays.at[at] = known
	}
	for i := range known.all {
		if in := known.all[i].in; in != nil && in.of == one.in.of {
			if one.use&met == 0 {
				one.as = known.all[i].as
			}
			if in == one.in && !known.all[i].done {
				one.use |= known.all[i].use
			}
			one.model = cmp.Or(one.model, known.all[i].model)
			known.all[i] = one
			return
		}
	}
	known.all = append(known.all, one)
}

// ForgetStrays forgets the strays of a transaction, because it is undone now.
func (p *Places) ForgetStrays(all *journal.Ever) {
	p.all = all
	if !HasStrays() {
		return
	}
	strays.mu.Lock()
	defer strays.mu.Unlock()
	for at := range p.at {
		known := strays.at[at]
		if known == nil {
			continue
		}
		known.all = slices.DeleteFunc(known.all, func(one stray) bool { return one.in != nil && one.in.of == all })
		if len(known.all) == 0 {
			forgetStray(at)
		}
	}
}

// hasGone reports whether the struct no longer exists.
func (s *strayed) hasGone() bool { return s.forgotten && s.alive.Value() == nil }

// Loosen lets go of strays: the transaction is forgotten, and only the program keeps its structs. Written structs count as read once the knowledge
// about them is gone.
func (s *Structs) Loosen() {
	for i := s.Count - 1; i >= 0; i-- {
		loosen(s.Row(i))
	}
}

// LoosenRead does the same for a struct that was read. Call it for the last element of a slice first: weak pointers into one allocation are in a
// list that is searched from its beginning.
func LoosenRead(row reflect.Value) { loosen(row) }

func loosen(row reflect.Value) {
	at, ok := whereIs(row)
	if !ok {
		return
	}
	strays.mu.Lock()
	defer strays.mu.Unlock()
	known := strays.at[at]
	if known == nil {
		return
	}
	known.all = slices.DeleteFunc(known.all, func(one stray) bool { return one.done })
	known.forgotten, known.alive = true, weak.Make((*byte)(row.Addr().UnsafePointer()))
	for i, one := range known.all {
		if one.in != nil {
			known.all[i].in, known.all[i].then = nil, weak.Make(one.in)
		}
	}
	if !strays.sweeping {
		strays.sweeping = true
		time.AfterFunc(sweepEvery, sweep)
	}
}

// sweep removes strays whose structs are gone, until no forgotten ones are left.
func sweep() {
	strays.mu.Lock()
	defer strays.mu.Unlock()
	strays.sweeping = false
	for at, known := range strays.at {
		switch {
		case known.hasGone():
			forgetStray(at)
		case known.forgotten:
			strays.sweeping = true
		}
	}
	if strays.sweeping {
		time.AfterFunc(sweepEvery, sweep)
	}
}

// IsStray reports whether a struct is a stray, and leaves it one.
func IsStray(row reflect.Value) bool {
	journal.StrayEnded()
	at, _ := whereIs(row)
	if !HasStrays() {
		return false
	}
	strays.mu.Lock()
	defer strays.mu.Unlock()
	known := strays.at[at]
	return known != nil && !known.hasGone() && slices.ContainsFunc(known.all, func(one stray) bool { return !one.done })
}

// Forget forgets a stray, because it was read again.
func Forget(row reflect.Value) {
	if all, before := found(row); len(all)+len(before) > 0 {
		noteUsed(row, all, before)
	}
}

// ForgetStray forgets a stray, because its transaction is undone now.
func ForgetStray(row reflect.Value) {
	at, ok := whereIs(row)
	if !ok || !HasStrays() {
		return
	}
	strays.mu.Lock()
	defer strays.mu.Unlock()
	if strays.at[at] != nil {
		forgetStray(at)
	}
}

// ForgetStrays forgets all structs that are still kept.
func (s *Structs) ForgetStrays() {
	for i := 0; i < s.Count && HasStrays(); i++ {
		ForgetStray(s.Row(i))
	}
}

// Recover restores those structs that are strays, because a statement is about to use them.
func (s *Structs) Recover() {
	if s.Count == 0 {
		return
	}
	journal.StrayEnded()
	for i := 0; i < s.Count && HasStrays(); i++ {
		recoverRow(s.model, s.Row(i))
	}
}

// Recover restores a struct of a model if it is a stray.
func Recover(m *model.Model, row reflect.Value) {
	if journal.StrayEnded(); HasStrays() {
		recoverRow(m, row)
	}
}

func recoverRow(m *model.Model, row reflect.Value) {
	all, before := found(row)
	if len(all)+len(before) == 0 {
		return
	}
	defer noteUsed(row, all, before)
	for n := len(all) - 1; n >= 0; n-- {
		one := &all[n]
		e := one.in
		if e == nil {
			e = one.then.Value()
		}
		switch {
		case e != nil && e.isReadSince(row):
		case one.use&read == 0 && e != nil && (e.takeBackIn(row) || one.use == 0):
		case one.use == met && (m.Column == nil || heldIn(m, row).is(one.as)):
		case m.Column != nil:
			m.Column.Write(row, m.Column.Unread())
		}
	}
}
