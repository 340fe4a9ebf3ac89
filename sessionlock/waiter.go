package sessionlock

import (
	"sync"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// waiter is a caller that waits for one answer: the lock, that it was given back, or a token. Once it is in the inbox all
// of it but done belongs to core.mu, and to the caller once it has received from done.
//
// What is read by a caller that is woken stands together, and so does what is read when it is let in, and a waiter is as
// long as three cache lines: at 1,000 callers most of the time goes into moving memory between processors.
type waiter struct {
	outcome
	finished bool
	late     bool // it came when the try for its key may have been sent already

	wanted
	earlier *waiter // in the inbox
	gives   *Lock   // it waits for this one to be given back
	token   *tokenRequest
	line

	key      lockkey.Key
	deadline holder.Instant // of the caller, zero for none
}

// outcome is the answer to a caller, and how it gets it.
type outcome struct {
	done    chan struct{} // gets one value when there is an answer
	after   chan struct{} // done of the next in chain
	chain   *chain        // nil for one that is woken by itself
	lock    *Lock         // that it got
	err     error
	newLock *Lock // what it will get, made outside core.mu
}

// line is where a waiter stands.
type line struct {
	entry      *entry  // nil before it is in line, and of those who wait for a token
	next, prev *waiter // in entry.queue
}

var waiters = sync.Pool{New: func() any { return &waiter{outcome: outcome{done: make(chan struct{}, 1)}} }}

// newWaiter takes a waiter from those that were reused.
func newWaiter(r *request) *waiter {
	w, _ := waiters.Get().(*waiter)
	w.wanted, w.key = r.wanted, r.key
	return w
}

// equip makes what a waiter for a lock will get.
func (w *waiter) equip(m *Manager) {
	if w.newLock == nil {
		w.newLock = &Lock{}
	}
	l := w.newLock
	l.m, l.key, l.mode = m, w.key, w.mode
}

// newReleaser is a waiter for l to be given back.
func newReleaser(l *Lock) *waiter {
	w, _ := waiters.Get().(*waiter)
	w.gives = l
	return w
}

// wait returns when w has its answer.
func (w *waiter) wait() {
	<-w.done
	w.wakeNext()
}

// wakeNext wakes who comes after w in its chain.
func (w *waiter) wakeNext() {
	if w.after != nil {
		w.after <- struct{}{}
	}
}

// reuse gives back a waiter whose done was received, or that never got an answer.
func (w *waiter) reuse() {
	*w = waiter{outcome: outcome{done: w.done, newLock: w.newLock}}
	waiters.Put(w)
}

// queue is the waiters of a key in the order they came.
type queue struct{ first, last *waiter }

func (q *queue) push(w *waiter) {
	w.prev = q.last
	if q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
}

// wants reports whether anybody in line wants the key in mode.
func (q *queue) wants(mode wire.Mode) bool {
	for w := q.first; w != nil; w = w.next {
		if w.mode == mode {
			return true
		}
	}
	return false
}

// triesOnly reports whether nobody in line waits.
func (q *queue) triesOnly() bool {
	for w := q.first; w != nil; w = w.next {
		if !w.try {
			return false
		}
	}
	return true
}

func (q *queue) remove(w *waiter) {
	if w.prev == nil {
		q.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.next, w.prev = nil, nil
}
