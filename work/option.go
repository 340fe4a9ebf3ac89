package work

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/observe"
)

// Option changes how a [Worker] works, and which indexes [Migrate] makes. The set is closed.
type Option interface{ apply(*config) error }

type option func(*config) error

func (o option) apply(c *config) error { return o(c) }

type config struct {
	workers  int
	queues   []string // nil: all
	lease    time.Duration
	poll     time.Duration
	grace    time.Duration
	backoff  func(int) time.Duration
	one      string // OnePer
	fair     string // FairBy
	observer observe.Observer
}

func newConfig(opts []Option) (*config, error) {
	c := &config{workers: 10, lease: time.Minute, poll: time.Second, grace: 10 * time.Second, backoff: backoff}
	for _, o := range opts {
		if o == nil {
			return nil, optionError("an option is nil")
		}
		if err := o.apply(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// backoff doubles from a second to an hour.
func backoff(attempt int) time.Duration {
	d := min(time.Second<<min(max(attempt, 1)-1, 12), time.Hour)
	return d + rand.N(d/4)
}

// optionRefusedError is an ErrOption with a text of its own, because the text of ErrOption is about locks.
type optionRefusedError struct{ error }

func optionError(format string, args ...any) error {
	return optionRefusedError{fmt.Errorf("gormlock: work: "+format, args...)}
}

func (r optionRefusedError) Is(target error) bool { return target == gormlock.ErrOption }

func (r optionRefusedError) Unwrap() error { return errors.Unwrap(r.error) }

// Workers is how many jobs run at once. Default: 10.
func Workers(n int) Option {
	return option(func(c *config) error {
		if n < 1 {
			return optionError("Workers(%d) must be at least 1", n)
		}
		c.workers = n
		return nil
	})
}

// Queues names the queues to work for. Default: all queues.
func Queues(names ...string) Option {
	names = slices.Clone(names)
	return option(func(c *config) error {
		if len(names) == 0 || slices.Contains(names, "") {
			return optionError("Queues(%q) names no queue: leave it out to work for all", names)
		}
		c.queues = names
		return nil
	})
}

// Lease is how long a dead worker keeps its jobs. A living worker renews its leases after a third of that time. It cannot do so while a
// transaction has locked the row of the job. So a transaction in which a handler writes its job must be shorter than the lease, unless the handler
// has called [Complete] in it. Default: a minute.
func Lease(d time.Duration) Option {
	return option(func(c *config) error {
		if d < 10*time.Millisecond {
			return optionError("Lease(%s) must be at least 10ms", d)
		}
		c.lease = d
		return nil
	})
}

// Poll is how often an idle worker that gets no notifications looks for jobs. Default: a second.
func Poll(d time.Duration) Option {
	return option(func(c *config) error {
		if d < time.Millisecond {
			return optionError("Poll(%s) must be at least 1ms", d)
		}
		c.poll = d
		return nil
	})
}

// Grace is how long handlers may go on after the context of [Worker.Run] has ended. Default: ten seconds.
func Grace(d time.Duration) Option {
	return option(func(c *config) error {
		if d < 0 {
			return optionError("Grace(%s) is negative", d)
		}
		c.grace = d
		return nil
	})
}

// Backoff is the pause after an attempt that failed; the first is attempt 1. Default: a second, doubled each time up to an
// hour, and up to a quarter more.
func Backoff(pause func(attempt int) time.Duration) Option {
	return option(func(c *config) error {
		if pause == nil {
			return optionError("Backoff(nil), give it a function")
		}
		c.backoff = pause
		return nil
	})
}

// OnePer runs the jobs that share a value of the column one at a time, in the order of their IDs. Of each value, only the oldest job that
// is neither done nor dead is handed out. So a job that waits to be tried again holds up the later ones. Jobs with NULL
// hold up no others. A job that is committed after younger ones, or is requeued, runs as soon as a worker looks for it,
// after at most five seconds. Give Migrate the option too: it makes an index that keeps two jobs of a value from running, whoever claims
// them. While an old transaction is open, vacuum cannot remove done jobs from this index. Then the cost of a claim grows with the
// number of jobs of its value that were done meanwhile.
// Default: jobs run at the same time.
func OnePer(column string) Option {
	return option(func(c *config) error {
		c.one = column
		return named("OnePer", column)
	})
}

// FairBy shares the workers among the values of the column: every value has its first job done before any has its
// second, whatever the priorities. The jobs of one value come by priority and ID. So a customer with 100,000 jobs does
// not delay the single job of another. Give Migrate the option too. Default: by priority and ID alone.
func FairBy(column string) Option {
	return option(func(c *config) error {
		c.fair = column
		return named("FairBy", column)
	})
}

func named(option, column string) error {
	if column == "" {
		return optionError("%s names no column", option)
	}
	return nil
}

// Observer gets every event of jobs: [observe.Claimed], Done, Failed, Later, Dead and TakenOver. Default: none.
func Observer(o observe.Observer) Option {
	return option(func(c *config) error {
		if o == nil {
			return optionError("Observer(nil), leave it out for none")
		}
		c.observer = observe.Contain(o)
		return nil
	})
}
