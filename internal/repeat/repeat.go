// Package repeat runs a whole transaction again where that cures the conflict which it met.
package repeat

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gormlock/gormlock/internal/cause"
)

// Budget is how often something may run, and when it runs again. The zero value runs it once.
type Budget struct {
	Attempts int           // how often it may run; 0: once
	Within   time.Duration // the time that ctx leaves to all runs, for the error's text; 0: no bound
	RetryIf  func(error) bool
	Again    func(attempt int, err error) // called before each run but the first; nil: nobody is told
}

// Run runs once until it succeeds, no other run can cure its error, or attempts or time are used up.
func (b Budget) Run(ctx context.Context, once func() error) error {
	for attempt := 1; ; attempt++ {
		began := time.Now()
		err := once()
		switch {
		case err == nil:
			return nil
		case b.Within > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded):
			return b.outOfTime(attempt, ctx.Err(), err)
		case b.Attempts <= 1 || !b.RetryIf(err):
			return err
		case attempt == b.Attempts:
			return fmt.Errorf("gormlock: gave up after %d attempts: %w", attempt, cause.Because(err))
		}
		if ended := pause(ctx, attempt, time.Since(began)); ended != nil {
			return b.outOfTime(attempt, ended, err)
		}
		if b.Again != nil {
			b.Again(attempt, err)
		}
	}
}

// outOfTime is the error of a call whose context has ended, with that of its last run.
func (b Budget) outOfTime(attempts int, ended, last error) error {
	within := ""
	if b.Within > 0 && errors.Is(ended, context.DeadlineExceeded) {
		within = fmt.Sprintf(" within %s,", b.Within)
	}
	if errors.Is(last, ended) {
		return fmt.Errorf("gormlock: gave up%s after %d attempts: %w", within, attempts, cause.Because(last))
	}
	return fmt.Errorf("gormlock: %w%s after %d attempts: %w", ended, within, attempts, cause.Because(last))
}

// pause waits a random time, on average longer with every attempt and in proportion to what a run takes: rivals meet
// again as often as their runs fill the time over which they are spread.
func pause(ctx context.Context, attempt int, took time.Duration) error {
	const longest = 2 * time.Second
	bound := min(max(took, time.Millisecond)<<min(attempt, 7), longest)
	timer := time.NewTimer(rand.N(bound))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
