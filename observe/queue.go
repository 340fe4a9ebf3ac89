package observe

import (
	"context"
	"sync"
	"sync/atomic"
)

// Queue lets an observer take its time: whoever emits an event leaves it in the queue and goes on. Events reach the
// observer one by one, in their order, on a goroutine that is there only while events are. When n events wait the next is
// dropped, and counted: nobody waits for a slow observer, and no memory grows for one that hangs.
//
// Use it around what asks a network, and not around what must be told within the call, such as an observer of spans.
// A panic ends with its event, as by [Contain].
type Queue struct {
	observer Observer
	most     int
	dropped  atomic.Int64

	mu      sync.Mutex
	waiting []queued
	busy    bool
	idle    sync.Cond
}

type queued struct {
	ctx context.Context
	e   Event
}

// NewQueue is a queue of at most n events before o; at least one.
func NewQueue(o Observer, n int) *Queue {
	q := &Queue{observer: Contain(o), most: max(n, 1)}
	q.idle.L = &q.mu
	return q
}

// Observe leaves the event in the queue.
func (q *Queue) Observe(ctx context.Context, e Event) {
	if q.observer == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= q.most {
		q.dropped.Add(1)
		return
	}
	q.waiting = append(q.waiting, queued{context.WithoutCancel(ctx), e})
	if !q.busy {
		q.busy = true
		go q.deliver()
	}
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
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.busy, q.waiting = false, nil
			q.idle.Broadcast()
			q.mu.Unlock()
			return
		}
		next := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		q.observer.Observe(next.ctx, next.e)
	}
}
