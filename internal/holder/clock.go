package holder

import (
	"context"
	"time"
)

// Instant is a moment on both clocks of this machine. The monotonic clock stands still while the machine sleeps, and people set the wall clock. So
// a lock ends when either clock says so.
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

// Since is the longer of the two times that have passed by the two clocks.
func (i Instant) Since(earlier Instant) time.Duration {
	return max(i.Mono-earlier.Mono, i.Wall-earlier.Wall)
}

// Clock returns the present moment.
type Clock func() Instant

type clockKey struct{}

// WithClock is ctx for a manager that uses another clock than this machine's.
func WithClock(ctx context.Context, c Clock) context.Context {
	return context.WithValue(ctx, clockKey{}, c)
}

// ClockOf is the clock for a manager that is made under ctx: [Now], unless ctx has another.
func ClockOf(ctx context.Context) Clock {
	if c, ok := ctx.Value(clockKey{}).(Clock); ok {
		return c
	}
	return Now
}
