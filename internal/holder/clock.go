package holder

import (
	"context"
	"time"
)

// Instant is a moment on both clocks of this machine. The monotonic one stands still while
// the machine sleeps, the wall clock is set by people: what is held ends when either says so.
type Instant struct {
	Mono time.Duration
	Wall time.Duration
}

var processStart = time.Now()

// Now is the present moment.
func Now() Instant { return At(time.Now()) }

// At is the moment of a time that [time.Now] gave.
func At(t time.Time) Instant {
	return Instant{Mono: t.Sub(processStart), Wall: time.Duration(t.UnixNano())}
}

// Since is the longer of the times that the two clocks say have passed.
func (i Instant) Since(earlier Instant) time.Duration {
	return max(i.Mono-earlier.Mono, i.Wall-earlier.Wall)
}

// Clock tells the present moment.
type Clock func() Instant

type clockKey struct{}

// WithClock is ctx for a manager that is to go by another clock than this machine's.
func WithClock(ctx context.Context, c Clock) context.Context {
	return context.WithValue(ctx, clockKey{}, c)
}

// ClockOf is the clock that a manager goes by which is made under ctx: [Now], if there is no other.
func ClockOf(ctx context.Context) Clock {
	if c, ok := ctx.Value(clockKey{}).(Clock); ok {
		return c
	}
	return Now
}
