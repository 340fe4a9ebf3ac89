package holder

import (
	"context"
	"fmt"
	"time"
)

// Lock is a lock that was acquired, or several.
type Lock interface {
	Bind(ctx context.Context) (bound context.Context, stop func())
	Release(ctx context.Context) error
}

// Do runs fn in a context that is bound to l, then releases l, even if fn panics. The release runs under its own context, which ends after within.
// Do returns the error of the release, of fn, or both, so a loss is reported even if fn returns nil.
func Do(ctx context.Context, l Lock, within time.Duration, fn func(ctx context.Context) error) (err error) {
	bound, stop := l.Bind(ctx)
	defer func() {
		stop()
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		switch released := l.Release(detached); {
		case err == nil:
			err = released
		case released != nil:
			err = fmt.Errorf("%w; %w", released, err)
		}
	}()
	return fn(bound)
}
