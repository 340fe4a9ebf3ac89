package install

import (
	"reflect"
	"sync"
	"sync/atomic"
)

// Unlinked are the structs from which GORM may have removed an association: see package unlinked. The zero value is ready.
type Unlinked struct {
	Calls Calls // of Association(…)
	Saves Saves // by its Replace and Append

	count      atomic.Int64
	mu         sync.Mutex
	now, older map[Owner]losses
}

// Owner is the struct of a row that holds an association.
type Owner struct {
	Of       reflect.Type
	Relation string
	Key      string // the key by which GORM found the row
}

// losses are the losses of a row, by the name that its table had: a model may have several tables, and a table several names.
type losses map[string]*Loss

// Loss says whether the removal from a struct was undone in its row.
type Loss struct{ undone atomic.Bool }

// Undo notes that the row still has what was removed from the struct.
func (l *Loss) Undo() { l.undone.Store(true) }

// Undone reports whether the row still has it.
func (l *Loss) Undone() bool { return l.undone.Load() }

// mostUnlinked is how many are kept of each age.
const mostUnlinked = 10_000

// Any reports whether there may be some.
func (u *Unlinked) Any() bool { return u.count.Load() > 0 }

// Note keeps a loss. It replaces what was known of the same struct in a table of this name.
func (u *Unlinked) Note(o Owner, table string, l *Loss) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.now == nil || len(u.now) >= mostUnlinked {
		u.now, u.older = map[Owner]losses{}, u.now
	}
	if u.now[o] == nil {
		u.now[o] = losses{}
	}
	u.now[o][table] = l
	u.counted()
}

// Undone reports whether a struct may lack what its row still has.
func (u *Unlinked) Undone(o Owner) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, loss := range u.now[o] {
		if loss.Undone() {
			return true
		}
	}
	for table, loss := range u.older[o] {
		if u.now[o][table] == nil && loss.Undone() {
			return true
		}
	}
	return false
}

func (u *Unlinked) counted() { u.count.Store(int64(len(u.now) + len(u.older))) }
