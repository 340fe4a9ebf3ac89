package lease

import (
	"sync"

	"github.com/gormlock/gormlock/internal/holder"
)

// maxFreed bounds the keys that are known as freed.
const maxFreed = 4096

// freed are the keys that this manager released last. Each is probably still free, so it is requested with the cheapest statement. If another
// process has taken it meanwhile, the caller asks a second time.
type freed struct {
	mu     sync.Mutex
	places map[holder.Place]struct{}
}

func (f *freed) add(at holder.Place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.places == nil || len(f.places) == maxFreed {
		f.places = map[holder.Place]struct{}{}
	}
	f.places[at] = struct{}{}
}

// take reports whether a key was released, and forgets that it was.
func (f *freed) take(at holder.Place) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, was := f.places[at]
	delete(f.places, at)
	return was
}
