package lease

import (
	"fmt"
	"strings"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/observe"
)

// Option changes how a [Manager] works, and which table [Migrate] creates. The set is
// closed.
type Option interface {
	applyManager(*config) error
}

type option func(*config) error

func (o option) applyManager(c *config) error { return o(c) }

type config struct {
	owner    string
	table    string // as the caller wrote it, "" for the default
	shedlock bool
	observer observe.Observer
	listener Listener
}

func newConfig(opts []Option) (*config, error) {
	c := &config{}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("%w: New: an option is nil", ErrOption)
		}
		if err := o.applyManager(c); err != nil {
			return nil, err
		}
	}
	if c.owner == "" {
		c.owner = holder.DefaultOwner()
	}
	return c, nil
}

// Owner names the manager for people: in the table, in events, and in the errors of those
// who find the lease taken. It is no proof of ownership, and may be the same for many.
// Default: host name and process id.
func Owner(name string) Option {
	return option(func(c *config) error {
		if len(name) > maxName || strings.ContainsRune(name, 0) {
			return fmt.Errorf("%w: Owner has %d bytes, more than %d, or a NUL byte", ErrOption, len(name), maxName)
		}
		c.owner = name
		return nil
	})
}

// Table is the table of the leases, "leases" or "schema.leases". Whoever is to be excluded
// uses the same one. Default: gormlock_lease, or shedlock with [ShedLock].
func Table(name string) Option {
	return option(func(c *config) error {
		if _, err := quoteTable(name); err != nil {
			return err
		}
		c.table = name
		return nil
	})
}

// ShedLock keeps the leases in the table of ShedLock (usingDbTime), the lock of Spring's
// schedulers, with the same columns and conditions, so that Java and Go exclude each other.
// A lease is named by the key's one part as it is given, several are joined by slashes
// (lockkey.Of("nightly") is Java's "nightly"). The table has no room for [Data] and nothing
// to wake waiters by: they ask again and again. Fencing tokens are issued to the Go side
// only, see the package comment. Default: the table of [Schema].
func ShedLock() Option {
	return option(func(c *config) error {
		c.shedlock = true
		return nil
	})
}

// Observer is told what happens to leases; a panic in it is contained. Default: nobody.
func Observer(o observe.Observer) Option {
	return option(func(c *config) error {
		c.observer = observe.Contain(o)
		return nil
	})
}

// Listen wakes those who wait for a lease when it is released, by whichever process: they
// ask the releaser to notify them. l is connected by one session as soon as somebody
// waits. Default: waiters ask again, after 10 ms at first and 250 ms at last.
func Listen(l Listener) Option {
	return option(func(c *config) error {
		if l == nil {
			return fmt.Errorf("%w: Listen(nil)", ErrOption)
		}
		c.listener = l
		return nil
	})
}
