package observe

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
)

// Contain is o for those who emit: a panic in Observe ends there, so that the lock, the
// write or the release it was told of goes on. The first is reported to [slog.Default]
// with its stack, later ones are not; o is told of later events all the same.
//
// Contain(nil) is nil: an emitter compares with nil and spends nothing. What is contained
// already comes back as it is.
func Contain(o Observer) Observer {
	switch o := o.(type) {
	case nil:
		return nil
	case *contained, multi:
		return o
	}
	return &contained{observer: o}
}

type contained struct {
	observer Observer
	report   sync.Once
}

func (c *contained) Observe(ctx context.Context, e Event) {
	defer func() {
		if cause := recover(); cause != nil {
			c.report.Do(func() { reportPanic(ctx, e, cause) })
		}
	}()
	c.observer.Observe(ctx, e)
}

// reportPanic logs, and lets a logger that panics too have it its way.
func reportPanic(ctx context.Context, e Event, cause any) {
	defer func() { _ = recover() }()
	slog.Default().ErrorContext(ctx, "gormlock: an observer panicked; later panics of it are not reported",
		"panic", cause, "event", e.Kind.String(), "key", e.Key, "stack", string(debug.Stack()))
}
