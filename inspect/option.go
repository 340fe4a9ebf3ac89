package inspect

import (
	"errors"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/internal/cause"
	"github.com/gormlock/gormlock/internal/lockid"
	"github.com/gormlock/gormlock/lockkey"
)

// Option changes what [Snapshot] shows. The set is closed.
type Option interface {
	HandlerOption
	applySnapshot(*config) error
}

type option func(*config) error

func (o option) applySnapshot(c *config) error { return o(c) }

// applyHandler keeps the option for the snapshots of the page.
func (o option) applyHandler(p *Page) error {
	p.snapshot = append(p.snapshot, o)
	return o(&config{known: map[lockid.ID]lockkey.Key{}})
}

type config struct {
	limit   int
	timeout time.Duration
	known   map[lockid.ID]lockkey.Key
	jobs    []jobTable
}

func newConfig(opts []Option) (*config, error) {
	c := &config{limit: 1000, timeout: 10 * time.Second, known: map[lockid.ID]lockkey.Key{}}
	for _, o := range opts {
		if o == nil {
			return nil, errors.New("gormlock: inspect: a nil option")
		}
		if err := o.applySnapshot(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Limit limits the entries of [View.Locks]; Totals.Cut says how many were left out.
// Requests that wait, and what they wait for, are left out last. Default: 1000.
func Limit(n int) Option {
	return option(func(c *config) error {
		if n < 1 {
			return fmt.Errorf("gormlock: inspect: Limit(%d) shows nothing", n)
		}
		c.limit = n
		return nil
	})
}

// Timeout limits each statement of the snapshot. Default: 10 seconds.
func Timeout(d time.Duration) Option {
	return option(func(c *config) error {
		if d < time.Millisecond {
			return fmt.Errorf("gormlock: inspect: Timeout(%s) leaves no time", d)
		}
		c.timeout = d
		return nil
	})
}

// Known gives names to keys. They come before the names in any table. An invalid key
// is an error. Default: none.
func Known(keys ...lockkey.Key) Option {
	return option(func(c *config) error {
		for _, k := range keys {
			if err := k.Err(); err != nil {
				return fmt.Errorf("gormlock: inspect: Known: %w", cause.Because(err))
			}
			for _, one := range k.Keys() { // both of a renamed key
				if id, ok := lockid.Of(one); ok {
					c.known[id] = one
				}
			}
		}
		return nil
	})
}
