package memory

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/model"
)

// strays are structs of transactions whose ctx has ended: the server has rolled back, or is about to, and the program has called neither Commit
// nor Rollback, which would restore them. Only the goroutine that next uses such a struct may touch it.
var strays struct {
	count    atomic.Int64
	mu       sync.Mutex
	at       map[placeOf]*strayed
	sweeping bool
}

// strayed is what is known of a place. The journal of the transaction keeps the struct alive until it is forgotten. From then on the program
// alone does, and another struct may be at the address when it has gone.
type strayed struct {
	all       []stray
	forgotten bool
	alive     weak.Pointer[byte] // set when it is forgotten
}

// stray is one struct of a statement. Without one it was read, or only met.
type stray struct {
	of   *Structs              // until it is forgotten
	then weak.Pointer[Structs] // after that; nil when they have gone
	i    int
	met  bool // nothing of it is taken back
	as   held // what it was then
}

// sweepEvery is how often forgotten strays are looked for that have gone.
const sweepEvery = time.Minute

func whereIs(row reflect.Value) (placeOf, bool) {
	if !row.IsValid() || !row.CanAddr() {
		return placeOf{}, false
	}
	return placeOf{row.Type(), row.Addr().Pointer()}, true
}

// HasStrays reports whether there are any.
func HasStrays() bool { return strays.count.Load() > 0 }

// Stray keeps the structs for whoever uses them next. It does not read them: their goroutine may be at it.
func (s *Structs) Stray() {
	if s.before == nil || s.After == nil {
		return
	}
	for i := range s.Count {
		addStray(s.Row(i), stray{of: s, i: i})
	}
}

// StrayRead does so for a struct that was read.
func StrayRead(row reflect.Value) { addStray(row, stray{}) }

// Stray does so for structs that were only met. If one is another by then, the program has moved it there.
func (n *Noted) Stray() {
	for i := range n.all {
		addStray(n.all[i].row, stray{met: true, as: n.all[i].is})
	}
}

// Loosen lets go of them, as that of Structs does.
func (n *Noted) Loosen() {
	for i := range slices.Backward(n.all) {
		loosen(n.all[i].row)
	}
}

// ForgetStrays forgets them.
func (n *Noted) ForgetStrays() {
	for i := 0; i < len(n.all) && HasStrays(); i++ {
		Forget(n.all[i].row)
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
	if !slices.Contains(known.all, one) {
		known.all = append(known.all, one)
	}
}

// hasGone reports whether the struct is no more.
func (s *strayed) hasGone() bool { return s.forgotten && s.alive.Value() == nil }

// Loosen lets go of strays: the transaction is forgotten, and nobody but the program keeps its structs. What was written counts as read
// when what is known of it has gone.
func (s *Structs) Loosen() {
	for i := s.Count - 1; i >= 0; i-- {
		loosen(s.Row(i))
	}
}

// LoosenRead does so for a struct that was read. Of the elements of a slice the last one comes first: weak pointers into one allocation are a list,
// and are looked for from its beginning.
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
	known.forgotten, known.alive = true, weak.Make((*byte)(row.Addr().UnsafePointer()))
	for i, one := range known.all {
		if one.of != nil {
			known.all[i] = stray{then: weak.Make(one.of), i: one.i}
		}
	}
	if !strays.sweeping {
		strays.sweeping = true
		time.AfterFunc(sweepEvery, sweep)
	}
}

// sweep takes away what has gone, until nothing is left that was forgotten.
func sweep() {
	strays.mu.Lock()
	defer strays.mu.Unlock()
	strays.sweeping = false
	for at, known := range strays.at {
		switch {
		case known.hasGone():
			delete(strays.at, at)
			strays.count.Add(-1)
		case known.forgotten:
			strays.sweeping = true
		}
	}
	if strays.sweeping {
		time.AfterFunc(sweepEvery, sweep)
	}
}

// found forgets a stray, and returns what is known of it: it was read again, or is restored now.
func found(row reflect.Value) []stray {
	at, _ := whereIs(row)
	if !HasStrays() {
		return nil
	}
	strays.mu.Lock()
	defer strays.mu.Unlock()
	known := strays.at[at]
	if known == nil {
		return nil
	}
	delete(strays.at, at)
	strays.count.Add(-1)
	if known.hasGone() {
		return nil
	}
	return known.all
}

// IsStray reports whether a struct is one, and leaves it so.
func IsStray(row reflect.Value) bool {
	journal.StrayEnded()
	at, _ := whereIs(row)
	if !HasStrays() {
		return false
	}
	strays.mu.Lock()
	defer strays.mu.Unlock()
	known := strays.at[at]
	return known != nil && !known.hasGone()
}

// Forget forgets a stray: it was read again, or its transaction was ended after all.
func Forget(row reflect.Value) { found(row) }

// ForgetStrays forgets all that are still kept.
func (s *Structs) ForgetStrays() {
	for i := 0; i < s.Count && HasStrays(); i++ {
		Forget(s.Row(i))
	}
}

// Recover restores the structs that are strays: a statement is about to use them.
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
	all := found(row)
	for n := len(all) - 1; n >= 0; n-- {
		of, i := all[n].of, all[n].i
		if of == nil {
			of = all[n].then.Value()
		}
		switch {
		case all[n].met && (m.Column == nil || heldIn(m, row).is(all[n].as)):
		case of != nil && of.standsFor(row, i):
			of.Places = NewPlaces() // nothing else is touched
			of.undoIn(row, i)
		case m.Column != nil:
			m.Column.Write(row, m.Column.Unread())
		}
	}
}
