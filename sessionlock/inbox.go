package sessionlock

import (
	"sync/atomic"
	"time"
)

const (
	// secondBatch is how many keys make a second batch worth sending before the first is answered.
	secondBatch = 256
	// combinedKeys is how many keys of a batch keep those who arrive from trying for the mutex.
	combinedKeys = 64
	// combiningTime is how long a batch that is not answered may keep those who arrive from trying for the mutex. With a
	// second batch behind it that may be twice as long. gatherTime is the same for a goroutine that lets others go first.
	combiningTime = 5 * time.Millisecond
	gatherTime    = time.Millisecond
)

// inbox is where callers leave what they want, for whoever has the mutex or takes it next. They do not wait for it
// themselves: when many are answered at once most of them want something next, and each would be put to sleep and woken
// once more. It needs no mutex.
type inbox struct {
	last      atomic.Pointer[waiter]
	combining atomic.Bool  // somebody is about to take the mutex and let all in: nobody else need try for it
	parked    atomic.Int32 // how many did not try
	timer     *time.Timer  // ends combining
}

// put leaves what w wants.
func (b *inbox) put(w *waiter) {
	for {
		w.earlier = b.last.Load()
		if b.last.CompareAndSwap(w.earlier, w) {
			return
		}
	}
}

// isEmpty spares those who arrive a Swap, which would take the cache line from them.
func (b *inbox) isEmpty() bool { return b.last.Load() == nil }

// takeAll returns who came first, and by [inbox.next] all others in the order they came.
func (b *inbox) takeAll() (first *waiter) {
	last := b.last.Swap(nil)
	b.parked.Store(0)
	for last != nil {
		last, last.earlier, first = last.earlier, first, last
	}
	return first
}

// next is who came after w, which is taken out.
func (b *inbox) next(w *waiter) *waiter {
	next := w.earlier
	w.earlier = nil
	return next
}

// combine says whether those who arrive need not try for the mutex. Whoever says so has set the timer that ends it.
func (b *inbox) combine(on bool) {
	if on != b.combining.Load() {
		b.combining.Store(on)
	}
}

// triesItself reports whether a caller who has arrived is to try for the mutex: nobody will let it in soon, or as many as
// make a batch worth sending wait to be let in.
func (b *inbox) triesItself() bool { return !b.combining.Load() || b.parked.Add(1) == secondBatch }
