package pgtest

import (
	"context"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
)

// Skewed is ctx for a manager whose wall clock is wrong.
func Skewed(ctx context.Context, by time.Duration) context.Context {
	return holder.WithClock(ctx, func() holder.Instant {
		now := holder.Now()
		return holder.Instant{Mono: now.Mono, Wall: now.Wall + by}
	})
}
