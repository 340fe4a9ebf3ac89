package holder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/observe"
)

// Apply applies the options of a call to c, and stops at one that is nil or refused.
func Apply[O, C any](call string, opts []O, c C, apply func(O, C) error) error {
	for _, o := range opts {
		if any(o) == nil {
			return fmt.Errorf("%w: %s: an option is nil", advisory.ErrOption, call)
		}
		if err := apply(o, c); err != nil {
			return err
		}
	}
	return nil
}

// Set sets a field and returns nil, for options that accept any value.
func Set[T any](field *T, value T) error {
	*field = value
	return nil
}

// DefaultOwner names a process without a name of its own: host name and process id.
func DefaultOwner() string {
	host, _ := os.Hostname()
	return host + ":" + strconv.Itoa(os.Getpid())
}

// CheckTimeout refuses a Timeout that leaves no time.
func CheckTimeout(d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("%w: Timeout(%s) leaves no time, use Try to not wait", advisory.ErrOption, d)
	}
	return nil
}

// errTimeout is the cause of a context that ended by [WithTimeout].
var errTimeout = errors.New("gormlock: timeout")

// WithTimeout is ctx with a limit of d; d ≤ 0 is no limit. [TimedOut] recognizes its end.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, d, errTimeout)
}

// TimedOut reports whether ctx ended by the limit of [WithTimeout], and not otherwise.
func TimedOut(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errTimeout) }

// Outcome is the event for an acquisition that ended with err. ok is false if err says nothing about the lock.
func Outcome(ctx context.Context, err error) (kind observe.Kind, ok bool) {
	switch {
	case err == nil:
		return observe.Acquired, true
	case errors.Is(err, advisory.ErrNotAcquired):
		return observe.NotAcquired, true
	case errors.Is(err, advisory.ErrLockTimeout) || ctx.Err() != nil:
		return observe.TimedOut, true
	}
	return 0, false
}

// Jitter is d or up to a quarter more, so that processes do not act at the same time.
func Jitter(d time.Duration) time.Duration { return lockrequest.Jitter(d) }
