package lease

import (
	"fmt"
	"time"
)

// EveryOption changes how [Manager.Every] works. The set is closed; an option holds no state.
type EveryOption interface {
	applyEvery(*terms) error
}

type everyOption func(*terms) error

func (o everyOption) applyEvery(t *terms) error { return o(t) }

// terms are those of one schedule.
type terms struct {
	missed MissedPolicy
	tries  int
	ttl    time.Duration
}

func newTerms(opts []EveryOption) (*terms, error) {
	t := &terms{missed: RunLast, tries: 3, ttl: 15 * time.Second}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("%w: Every: an option is nil", ErrOption)
		}
		if err := o.applyEvery(t); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// MissedPolicy says what becomes of missed ticks: see [Missed].
type MissedPolicy uint8

// What becomes of missed ticks.
const (
	Skip    MissedPolicy = iota + 1 // none is run
	RunLast                         // the last one is run, at once
	RunAll                          // all are run, in order
)

// Missed says what becomes of ticks that nobody could begin on time, because no process was there, the database was
// not, or a run took longer than the interval. A first start has missed nothing, and a tick that was begun is not
// missed. Default: RunLast.
func Missed(p MissedPolicy) EveryOption {
	return everyOption(func(t *terms) error {
		if p < Skip || p > RunAll {
			return fmt.Errorf("%w: Missed(%d) is none of Skip, RunLast and RunAll", ErrOption, p)
		}
		t.missed = p
		return nil
	})
}

// Tries is how often a tick is run in all until it succeeds. After that it is given up: the observer is told of
// observe.GivenUp. Runs of all processes count, also those that died, and the process that decides is the one that is
// to run the tick next. Default: 3.
func Tries(n int) EveryOption {
	return everyOption(func(t *terms) error {
		if n < 1 {
			return fmt.Errorf("%w: Tries(%d) runs nothing", ErrOption, n)
		}
		t.tries = n
		return nil
	})
}

// TTL is the length of the lease that keeps a run, which is renewed as long as the run takes: after the death of a
// process its tick is free for another one when this time has passed. Default: 15 seconds.
func TTL(d time.Duration) EveryOption {
	return everyOption(func(t *terms) error {
		if d < minRenewed {
			return fmt.Errorf("%w: TTL(%s) is shorter than %s, the least that can be kept", ErrOption, d, minRenewed)
		}
		t.ttl = d
		return nil
	})
}
