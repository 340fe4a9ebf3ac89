package memory

import (
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/gormlock/gormlock/internal/model"
)

// strays are structs of transactions whose ctx has ended: the server has rolled back, and the program has called neither Commit
// nor Rollback, which would restore them. Only the goroutine that next uses such a struct may touch it.
var strays struct {
	count atomic.Int64
	mu    sync.Mutex
	at    map[placeOf][]stray
}

// stray is one struct of a statement. Without one it was read.
type stray struct {
	of *Structs
	i  int
}

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
		addStray(s.Row(i), stray{s, i})
	}
}

// StrayRead does so for a struct that was read.
func StrayRead(row reflect.Value) { addStray(row, stray{}) }

func addStray(row reflect.Value, one stray) {
	at, ok := whereIs(row)
	if !ok {
		return
	}
	strays.mu.Lock()
	defer strays.mu.Unlock()
	if strays.at == nil {
		strays.at = map[placeOf][]stray{}
	}
	if len(strays.at[at]) == 0 {
		strays.count.Add(1)
	}
	strays.at[at] = append(strays.at[at], one)
}

// found forgets a stray, and returns what is known of it: it was read again, or is restored now.
func found(row reflect.Value) []stray {
	at, ok := whereIs(row)
	if !ok || !HasStrays() {
		return nil
	}
	strays.mu.Lock()
	defer strays.mu.Unlock()
	all, has := strays.at[at]
	if has {
		delete(strays.at, at)
		strays.count.Add(-1)
	}
	return all
}

// Forget forgets a stray: it was read again, or its transaction was ended after all.
func Forget(row reflect.Value) { found(row) }

// ForgetStrays forgets all that are still kept.
func (s *Structs) ForgetStrays() {
	for i := 0; i < s.Count && HasStrays(); i++ {
		Forget(s.Row(i))
	}
}

// Recover restores a struct of a model if it is a stray.
func Recover(m *model.Model, row reflect.Value) {
	all := found(row)
	for n := len(all) - 1; n >= 0; n-- {
		switch one := all[n]; {
		case one.of != nil && one.of.standsFor(row, one.i):
			one.of.Places = NewPlaces() // nothing else is touched
			one.of.undoIn(row, one.i)
		case m.Column != nil:
			m.Column.Write(row, m.Column.Unread())
		}
	}
}
