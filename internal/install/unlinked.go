package install

import (
	"reflect"
	"sync"
	"sync/atomic"
)

// Unlinked are the structs from which GORM may have taken an association: see package unlinked. The zero value is ready.
type Unlinked struct {
	count      atomic.Int64
	mu         sync.Mutex
	now, older map[Owner]*Loss
}

// Owner is the struct of a row that holds an association.
type Owner struct {
	Of       reflect.Type
	Relation string
	Table    string
	Key      string // by which GORM found the row
}

// Loss is what became of what GORM has taken from a struct.
type Loss struct{ undone atomic.Bool }

// Undo notes that the row still has what the struct has lost.
func (l *Loss) Undo() { l.undone.Store(true) }

// Undone reports whether the row still has it.
func (l *Loss) Undone() bool { return l.undone.Load() }

// mostUnlinked is how many are kept of each age.
const mostUnlinked = 10_000

// Any reports whether there may be some.
func (u *Unlinked) Any() bool { return u.count.Load() > 0 }

// Note keeps one, in place of what was known of the struct before.
func (u *Unlinked) Note(o Owner, l *Loss) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.now == nil || len(u.now) >= mostUnlinked {
		u.now, u.older = map[Owner]*Loss{}, u.now
	}
	u.now[o] = l
	u.counted()
}

// Find returns what a struct may have lost; nil: nothing.
func (u *Unlinked) Find(o Owner) *Loss {
	u.mu.Lock()
	defer u.mu.Unlock()
	if loss := u.now[o]; loss != nil {
		return loss
	}
	return u.older[o]
}

func (u *Unlinked) counted() { u.count.Store(int64(len(u.now) + len(u.older))) }
