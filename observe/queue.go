package observe

import (
	"context"
	"sync"
	"sync/atomic"
)

// Queue lets an observer take its time: an emitter leaves its event in the queue and goes on. Events reach the observer
// one by one, in their order, on a goroutine that lives only while there are events. When n events wait, the next is
// dropped and counted. So nobody waits for a slow observer, and one that hangs uses no more memory.
//
// Use it around an observer that uses a network, but not around one that must be called within the call, such as an
// observer of spans. A panic ends with its event, as by [Contain].
type Queue struct {
	observer Observer
	most     int
	dropped  atomic.Int64

	mu      sync.Mutex
	waiting []queued // from first on
	first   int
	busy    bool
	idle    sync.Cond
	emptied func() // nil, or called when the queue is empty
}

type queued struct {
	ctx       context.Context
	e         Event
	delivered chan struct{} // nil, or with room for one: it has been delivered
}

// NewQueue is a queue of at most n events before o; at least one. A nil o observes nothing.
func NewQueue(o Observer, n int) *Queue {
	q := &Queue{}
	if o != nil {
		q.init(&guarded{observer: o}, n)
	} else {
		q.init(nil, n)
	}
	return q
}

func (q *Queue) init(o Observer, n int) {
	q.observer, q.most, q.idle.L = o, max(n, 1), &q.mu
}

// Observe leaves the event in the queue.
func (q *Queue) Observe(ctx context.Context, e Event) {
	if q.observer != nil {
		q.put(ctx, e, nil)
	}
}

// put leaves the event, unless the queue is full.
func (q *Queue) put(ctx context.Context, e Event, delivered chan struct{}) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting)-q.first >= q.most {
		q.dropped.Add(1)
		return false
	}
	if q.first > 0 && len(q.waiting) == cap(q.waiting) { // room is made at its beginning
		n := copy(q.waiting, q.waiting[q.first:])
		clear(q.waiting[n:])
		q.waiting, q.first = q.waiting[:n], 0
	}
	q.waiting = append(q.waiting, queued{context.WithoutCancel(ctx), e, delivered})
	if !q.busy {
		q.busy = true
		go q.deliver()
	}
	return true
}

// Dropped is how many events found the queue full.
func (q *Queue) Dropped() int64 { return q.dropped.Load() }

// Drain returns when all that was in the queue has been delivered, or with the error of ctx. Call it before the program
// ends.
func (q *Queue) Drain(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.idle.Broadcast()
	})
	defer stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.busy && ctx.Err() == nil {
		q.idle.Wait()
	}
	if q.busy {
		return ctx.Err()
	}
	return nil
}

func (q *Queue) deliver() {
	through := false
	defer func() {
		if !through { // the observer ended the goroutine
			go q.deliver()
		}
	}()
	for {
		next, ok := q.next()
		if !ok {
			through = true
			return
		}
		q.tell(next)
	}
}

func (q *Queue) tell(next queued) {
	if next.delivered != nil {
		defer func() { next.delivered <- struct{}{} }()
	}
	q.observer.Observe(next.ctx, next.e)
}

// next takes an event out of the queue; where there is none its goroutine is over.
func (q *Queue) next() (queued, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first == len(q.waiting) {
		q.busy, q.waiting, q.first = false, q.waiting[:0], 0
		q.idle.Broadcast()
		if q.emptied != nil {
			q.emptied()
		}
		return queued{}, false
	}
	next := q.waiting[q.first]
	q.waiting[q.first] = queued{}
	q.first++
	return next, true
}
