package observe

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// patience is how long an emitter waits for an observer, and most how many events wait for one that is slow.
const (
	patience = 10 * time.Millisecond
	most     = 1000
)

// Contain wraps o for code that emits events. The lock, the write or the release that an event is about goes on
// whatever o does.
//
// A panic in Observe ends there. The first is reported to [slog.Default] with its stack, later ones are not. o still
// gets later events.
//
// The emitter waits while o is called, so o can write into the span of its context. Nobody waits longer than 10 ms:
// after that, events go into a queue until o has worked through it. While a thousand are in the queue, further ones are
// dropped, which is reported once.
//
// Contain of nil, or of [Multi] of none, is nil, so an emitter compares with nil and spends nothing. An observer
// that Contain made is returned as it is.
func Contain(o Observer) Observer {
	switch o := o.(type) {
	case nil:
		return nil
	case *contained:
		return o
	case multi:
		if len(o) == 0 {
			return nil
		}
		return o
	}
	c := &contained{}
	c.queue.init(&guarded{observer: o}, most)
	c.queue.emptied = func() { c.slow.Store(false) }
	return c
}

type contained struct {
	queue  Queue
	slow   atomic.Bool // somebody has waited for nothing since the queue was empty
	report sync.Once
}

func (c *contained) Observe(ctx context.Context, e Event) {
	if c.slow.Load() {
		c.put(ctx, e, nil)
		return
	}
	w := waits.Get().(*wait)
	if !c.put(ctx, e, w.delivered) {
		return
	}
	w.limit.Reset(patience)
	select {
	case <-w.delivered:
		w.limit.Stop()
		waits.Put(w)
	case <-w.limit.C: // w is forgotten: the observer may come to it later
		c.slow.Store(true)
	}
}

// wait is one emitter's for one event, and used again.
type wait struct {
	delivered chan struct{}
	limit     *time.Timer
}

var waits = sync.Pool{New: func() any {
	w := &wait{delivered: make(chan struct{}, 1), limit: time.NewTimer(time.Hour)}
	w.limit.Stop()
	return w
}}

func (c *contained) put(ctx context.Context, e Event, delivered chan struct{}) bool {
	if c.queue.put(ctx, e, delivered) {
		return true
	}
	c.report.Do(func() {
		slog.Default().ErrorContext(ctx, "gormlock: an observer is too slow, and events are dropped; later ones are not reported", "event", e.Kind.String(), "key", e.Key)
	})
	return false
}

// guarded is an observer whose panics end with their event.
type guarded struct {
	observer Observer
	report   sync.Once
}

func (g *guarded) Observe(ctx context.Context, e Event) {
	defer func() {
		if cause := recover(); cause != nil {
			g.report.Do(func() { reportPanic(ctx, e, cause) })
		}
	}()
	g.observer.Observe(ctx, e)
}

// reportPanic logs, and lets a logger that panics too have it its way.
func reportPanic(ctx context.Context, e Event, cause any) {
	defer func() { _ = recover() }()
	slog.Default().ErrorContext(ctx, "gormlock: an observer panicked; later panics of it are not reported",
		"panic", cause, "event", e.Kind.String(), "key", e.Key, "stack", string(debug.Stack()))
}
