package sessionlock

import (
	"sync/atomic"
	"time"
)

const (
	// secondBatch is the number of keys from which a second batch is sent before the first is answered.
	secondBatch = 256
	// combinedKeys is the number of keys of a batch from which new callers do not try to lock the mutex.
	combinedKeys = 64
	// combiningTime is how long an unanswered batch may keep new callers from trying to lock the mutex. With a second batch after it, that time can
	// double. gatherTime is the same for a goroutine that lets others run first.
	combiningTime = 5 * time.Millisecond
	gatherTime    = time.Millisecond
)

// inbox is where callers leave their requests for the goroutine that has the mutex or locks it next. They do not wait for
// the mutex themselves: when many callers are answered at once, most of them soon have another request, and each would
// sleep and be woken once more. The inbox needs no mutex.
type inbox struct {
	last      atomic.Pointer[waiter]
	combining atomic.Bool  // a goroutine will soon lock the mutex and serve all: others need not try
	parked    atomic.Int32 // how many callers did not try
	timer     *time.Timer  // ends combining
}

// put adds the request of w.
func (b *inbox) put(w *waiter) {
	for {
		w.earlier = b.last.Load()
		if b.last.CompareAndSwap(w.earlier, w) {
			return
		}
	}
}

// isEmpty avoids a Swap, which would take the cache line from new callers.
func (b *inbox) isEmpty() bool { return b.last.Load() == nil }

// takeAll returns the caller that came first. [inbox.next] returns the others in the order they came.
func (b *inbox) takeAll() (first *waiter) {
	last := b.last.Swap(nil)
	b.parked.Store(0)
	for last != nil {
		last, last.earlier, first = last.earlier, first, last
	}
	return first
}

// next returns the caller that came after w, and removes w.
func (b *inbox) next(w *waiter) *waiter {
	next := w.earlier
	w.earlier = nil
	return next
}

// combine says whether new callers need not try to lock the mutex. Set the timer that ends it before.
func (b *inbox) combine(on bool) {
	if on != b.combining.Load() {
		b.combining.Store(on)
	}
}

// triesItself reports whether a new caller must try to lock the mutex: if no goroutine will serve it soon, or if the
// requests in the inbox are enough for a batch.
func (b *inbox) triesItself() bool { return !b.combining.Load() || b.parked.Add(1) == secondBatch }
