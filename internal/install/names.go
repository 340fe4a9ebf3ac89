package install

import (
	"sync"
	"sync/atomic"
)

// Names is a set of names that only grows, and is empty in most programs.
type Names struct {
	some atomic.Bool
	all  sync.Map
}

// Add adds a name.
func (n *Names) Add(name string) {
	n.all.Store(name, nil)
	n.some.Store(true)
}

// Has reports whether the name was added.
func (n *Names) Has(name string) bool {
	if !n.some.Load() {
		return false
	}
	_, has := n.all.Load(name)
	return has
}
