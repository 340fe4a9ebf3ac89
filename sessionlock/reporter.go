package sessionlock

import (
	"context"
	"errors"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/observe"
)

// reporter reports events of locks to an observer. Without an observer it does nothing.
type reporter struct {
	observer observe.Observer // nil for none
	owner    string
	outbox   *outbox         // for events that are seen with core.mu held
	ctx      context.Context // for events without a caller
}

func (r *reporter) isOn() bool { return r.observer != nil }

// now reports an event at once. It is called without core.mu.
func (r *reporter) now(ctx context.Context, e observe.Event) {
	e.Source, e.Owner = "sessionlock", r.owner
	r.observer.Observe(ctx, e)
}

// later reports an event when core.mu is unlocked. There must be an observer.
func (r *reporter) later(e observe.Event) {
	r.outbox.call(func() { r.now(r.ctx, e) })
}

// acquired reports the end of an acquisition that began then.
func (r *reporter) acquired(ctx context.Context, q *request, l *Lock, began time.Time, err error) {
	if !r.isOn() {
		return
	}
	e := observe.Event{Key: q.key.String(), Mode: q.mode.String(), Wait: time.Since(began), Err: err}
	e.Space, e.ID = q.id.Space, q.id.ID
	kind, ok := holder.Outcome(ctx, err)
	if !ok {
		return // the error says nothing about the lock
	}
	e.Kind = kind
	if l == nil {
		r.now(ctx, e)
		return
	}
	e.Token = l.Token().Number
	r.now(ctx, e)
	if lost := l.report(); lost != nil {
		r.now(ctx, l.event(observe.Lost, lost))
	}
}

// released reports the end of a lock by Release. The event is "released", even if the server did not confirm it in time,
// or "lost" if the lock was lost meanwhile. A loss before Release was already reported, and a lock ends once.
func (r *reporter) released(ctx context.Context, l *Lock, err error) {
	if !r.isOn() || errors.Is(err, ErrReleased) {
		return
	}
	kind := observe.Released
	if errors.Is(err, ErrLost) {
		if !l.wasReleased() {
			return
		}
		kind = observe.Lost
	}
	r.now(ctx, l.event(kind, err))
}
