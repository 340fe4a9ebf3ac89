package sessionlock

import (
	"sync"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// waiter is a caller that waits for one answer: that it has the lock, that the lock was unlocked, or a token. Once it is
// in the inbox, all of it but done belongs to core.mu; once the caller has received from done, it belongs to the caller.
//
// Fields that a woken caller reads stand together, and so do the fields that are read when it leaves the inbox. A waiter
// is as long as three cache lines. With 1,000 callers most of the time is spent on moving memory between processors.
type waiter struct {
	outcome
	finished bool
	late     bool // the try for its key may have been sent before it came

	wanted
	earlier *waiter // in the inbox
	gives   *Lock   // it waits until this lock is unlocked
	token   *tokenRequest
	line

	key      lockkey.Key
	deadline holder.Instant // of the caller, zero for none
}

// outcome is the answer to a caller, and how the caller gets it.
type outcome struct {
	done    chan struct{} // gets one value when there is an answer
	after   chan struct{} // done of the next in chain
	chain   *chain        // nil: woken alone
	lock    *Lock         // the lock that it got
	err     error
	newLock *Lock // the lock that it will get, made outside of core.mu
}

// line is the place of a waiter in a queue.
type line struct {
	entry      *entry  // nil before it is in a queue, and for a token
	next, prev *waiter // in entry.queue
}

var waiters = sync.Pool{New: func() any { return &waiter{outcome: outcome{done: make(chan struct{}, 1)}} }}

// newWaiter returns a waiter, a used one if possible.
func newWaiter(r *request) *waiter {
	w, _ := waiters.Get().(*waiter)
	w.wanted, w.key = r.wanted, r.key
	return w
}

// equip makes the lock that a waiter will get.
func (w *waiter) equip(m *Manager) {
	if w.newLock == nil {
		w.newLock = &Lock{}
	}
	l := w.newLock
	l.m, l.key, l.mode = m, w.key, w.mode
}

// newReleaser returns a waiter for the unlock of l.
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

// wakeNext wakes the waiter after w in its chain.
func (w *waiter) wakeNext() {
	if w.after != nil {
		w.after <- struct{}{}
	}
}

// reuse keeps a waiter for the next call. Its done was received, or it never got an answer.
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
