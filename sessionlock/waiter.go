package sessionlock

import (
	"sync"
	"time"

	"github.com/gormlock/gormlock/lockkey"
)

// waiter is a caller that waits for one answer: the lock, that it was given back, or a
// token. From its arrival on all fields but done belong to Manager.mu.
type waiter struct {
	id       lockID
	key      lockkey.Key
	mode     mode
	try      bool
	fair     bool
	late     bool      // it came when the try for its key may have been sent already
	deadline time.Time // of the caller, zero for none

	gives   *Lock    // it waits for this one to be given back
	issuing *issuing // it waits for this token
	earlier *waiter  // in Manager.arrivals

	e          *entry  // nil before it is in line, and of those who wait for a token
	next, prev *waiter // in e.queue

	settled bool
	lock    *Lock // that it got
	err     error
	done    chan struct{} // gets one value once settled

	newLock *Lock // what it will get, made outside mu
}

var waiters = sync.Pool{New: func() any { return &waiter{done: make(chan struct{}, 1)} }}

// newWaiter takes a waiter from those that were reused.
func newWaiter(r *request) *waiter {
	w, _ := waiters.Get().(*waiter)
	w.id, w.key, w.mode, w.try, w.fair = r.id, r.key, r.mode, r.try, r.fair
	return w
}

// equip makes what a waiter for a lock will get.
func (w *waiter) equip() {
	if w.newLock == nil {
		w.newLock = &Lock{}
	}
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
