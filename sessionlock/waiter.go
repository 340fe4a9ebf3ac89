package sessionlock

import (
	"sync"
	"time"

	"github.com/gormlock/gormlock/lockkey"
)

// waiter is a caller that waits for one answer: the lock, that it was given back, or a
// token. From its arrival on all fields but done belong to Manager.mu, and to the caller
// once it has received from done.
//
// What is read by a caller that is woken stands together, and so does what is read when it
// is let in: at 1,000 callers most of the time goes into moving memory between processors.
type waiter struct {
	done    chan struct{} // gets one value once settled
	after   chan struct{} // done of the next in lane
	lane    *lane         // nil for one that is woken by itself
	lock    *Lock         // that it got
	err     error
	newLock *Lock // what it will get, made outside mu
	settled bool
	mode    mode
	try     bool
	fair    bool
	late    bool // it came when the try for its key may have been sent already

	id         lockID
	gives      *Lock    // it waits for this one to be given back
	issuing    *issuing // it waits for this token
	earlier    *waiter  // in Manager.arrivals
	e          *entry   // nil before it is in line, and of those who wait for a token
	next, prev *waiter  // in e.queue

	key      lockkey.Key // of the lock, or token, that it wants
	deadline time.Time   // of the caller, zero for none
}

var waiters = sync.Pool{New: func() any { return &waiter{done: make(chan struct{}, 1)} }}

// newWaiter takes a waiter from those that were reused.
func newWaiter(r *request) *waiter {
	w, _ := waiters.Get().(*waiter)
	w.id, w.key, w.mode, w.try, w.fair = r.id, r.key, r.mode, r.try, r.fair
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

// reuse gives back a waiter whose done was received, or that was never settled.
func (w *waiter) reuse() {
	*w = waiter{done: w.done, newLock: w.newLock}
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
func (q *queue) wants(mode mode) bool {
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
