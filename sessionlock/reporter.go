package sessionlock

import (
	"context"
	"errors"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/observe"
)

// reporter tells an observer what happens to locks. Without one it does nothing.
type reporter struct {
	observer observe.Observer // nil for none
	owner    string
	outbox   *outbox         // for what is seen with core.mu held
	ctx      context.Context // for what no caller did
}

func (r *reporter) isOn() bool { return r.observer != nil }

// now tells the observer. It is called without core.mu.
func (r *reporter) now(ctx context.Context, e observe.Event) {
	e.Source, e.Owner = "sessionlock", r.owner
	r.observer.Observe(ctx, e)
}

// later is now when core.mu is given back. There is an observer.
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
		return // not a fact about the lock
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

// released reports the end of a lock by Release: released, even if the server did not confirm it in time, or lost on
// the way. A loss before that was already reported, and a lock ends once.
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
