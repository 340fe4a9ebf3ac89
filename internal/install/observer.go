package install

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/observe"
)

// Tell hands e to the observer, if there is one.
func (s *Settings) Tell(ctx context.Context, e observe.Event) {
	if !s.Observed() {
		return
	}
	e.Source = "gormlock"
	s.Observer.Observe(ctx, e)
}

// Observe makes o the observer.
func (s *Settings) Observe(o observe.Observer) error {
	if o == nil {
		return fmt.Errorf("%w: WithObserver(nil), leave it out for none", fault.ErrOption)
	}
	s.Observer = observe.Contain(o)
	return nil
}

// Observed reports whether there is an observer.
func (s *Settings) Observed() bool { return s != nil && s.Observer != nil }

// Began returns the current time if an observer wants to know how long something takes.
func (s *Settings) Began() time.Time {
	if !s.Observed() {
		return time.Time{}
	}
	return time.Now()
}

// TellRefused tells the observer for which rows a write was refused.
func (s *Settings) TellRefused(ctx context.Context, err error) {
	if s.Observed() && err != nil {
		s.Refused(ctx, s, err)
	}
}

// Refusal returns the event for the error of a lock. is is false for other errors.
func Refusal(ctx context.Context, err error) (kind observe.Kind, is bool) {
	switch {
	case errors.Is(err, fault.ErrNotAcquired):
		return observe.NotAcquired, true
	case errors.Is(err, fault.ErrLockTimeout), ctx.Err() != nil:
		return observe.TimedOut, true
	}
	return 0, false
}
