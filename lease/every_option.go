package lease

import (
	"fmt"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
)

// EveryOption changes how [Manager.Every] works. The set is closed; an option holds no state.
type EveryOption interface {
	applyEvery(*terms) error
}

type everyOption func(*terms) error

func (o everyOption) applyEvery(t *terms) error { return o(t) }

// terms are the options of one schedule.
type terms struct {
	missed MissedPolicy
	tries  int
	ttl    time.Duration
}

func newTerms(opts []EveryOption) (*terms, error) {
	t := &terms{missed: RunLast, tries: 3, ttl: 15 * time.Second}
	return t, holder.Apply("Every", opts, t, EveryOption.applyEvery)
}

// MissedPolicy says what happens to missed ticks: see [Missed].
type MissedPolicy uint8

// What happens to missed ticks.
const (
	Skip    MissedPolicy = iota + 1 // none is run
	RunLast                         // the last one is run, at once
	RunAll                          // all are run, in order
)

// Missed says what happens to ticks that no process could begin on time: no process was running, the database was
// down, or a run took longer than the interval. A first start has missed nothing, and a tick that was begun is not
// missed. Default: RunLast.
func Missed(p MissedPolicy) EveryOption {
	return everyOption(func(t *terms) error {
		if p < Skip || p > RunAll {
			return fmt.Errorf("%w: Missed(%d) must be Skip, RunLast or RunAll", ErrOption, p)
		}
		return holder.Set(&t.missed, p)
	})
}

// Tries is how often a tick is run in all until it succeeds. After that it is given up, and the observer gets
// observe.GivenUp. The runs of all processes count, even of those that died. The process that would run the tick next
// decides. Default: 3.
func Tries(n int) EveryOption {
	return everyOption(func(t *terms) error {
		if n < 1 {
			return fmt.Errorf("%w: Tries(%d) must be at least 1", ErrOption, n)
		}
		return holder.Set(&t.tries, n)
	})
}

// TTL is the length of the lease of a run. It is renewed as long as the run takes. After the death of a process,
// another one can run its tick when this time has passed. Default: 15 seconds.
func TTL(d time.Duration) EveryOption {
	return everyOption(func(t *terms) error {
		if d < minRenewed {
			return fmt.Errorf("%w: TTL(%s) is shorter than %s, the least that can be kept", ErrOption, d, minRenewed)
		}
		return holder.Set(&t.ttl, d)
	})
}
