package lease

import (
	"slices"
	"sync"

	"github.com/gormlock/gormlock/internal/holder"
)

// waiters are the callers of this process that wait for leases. Callers that want the same (a key with so many slots, or
// the whole key) form one queue. Only the first of a queue asks the database.
type waiters struct {
	mu     sync.Mutex
	queues map[holder.Place]map[int][]*waiter // by the number of slots
}

// waiter is a place in a queue.
type waiter struct {
	first chan struct{} // closed when it is the first
	woken chan struct{} // gets a value when it is worth asking again
}

// join puts a waiter at the end of a queue for a key.
func (q *waiters) join(key holder.Place, slots int) *waiter {
	w := &waiter{first: make(chan struct{}), woken: make(chan struct{}, 1)}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queues == nil {
		q.queues = map[holder.Place]map[int][]*waiter{}
	}
	if q.queues[key] == nil {
		q.queues[key] = map[int][]*waiter{}
	}
	queue := q.queues[key][slots]
	if len(queue) == 0 {
		close(w.first)
	}
	q.queues[key][slots] = append(queue, w)
	return w
}

// leave removes a waiter from its queue.
func (q *waiters) leave(key holder.Place, slots int, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	queue := q.queues[key][slots]
	i := slices.Index(queue, w)
	queue = slices.Delete(queue, i, i+1)
	switch {
	case len(queue) > 0:
		if i == 0 {
			close(queue[0].first)
		}
		q.queues[key][slots] = queue
		return
	case len(q.queues[key]) > 1:
		delete(q.queues[key], slots)
		return
	}
	delete(q.queues, key)
}

// wake makes the first waiter of each queue of a key ask again. at is the place of the key or of one of its slots.
func (q *waiters) wake(at holder.Place) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wakeFirst(keyOf(at))
}

// wakeAll makes the first waiter of every queue ask again.
func (q *waiters) wakeAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key := range q.queues {
		q.wakeFirst(key)
	}
}

// wakeFirst is called with mu held.
func (q *waiters) wakeFirst(key holder.Place) {
	for _, queue := range q.queues[key] {
		select {
		case queue[0].woken <- struct{}{}:
		default:
		}
	}
}
