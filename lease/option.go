package lease

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gormlock/gormlock/internal/absent"
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
	if err := holder.Apply("New", opts, c, Option.applyManager); err != nil {
		return nil, err
	}
	if c.owner == "" {
		c.owner = holder.DefaultOwner()
	}
	return c, nil
}

// Owner names the manager for people: in the table, in events, and in the errors of
// others who find the lease taken. It proves no ownership, and many managers may have the
// same. Default: host name and process id.
func Owner(name string) Option {
	return option(func(c *config) error {
		if len(name) > maxName || strings.ContainsRune(name, 0) || !utf8.ValidString(name) {
			return fmt.Errorf("%w: Owner has %d bytes, where %d are allowed, or a NUL byte, or is not UTF-8", ErrOption, len(name), maxName)
		}
		return holder.Set(&c.owner, name)
	})
}

// Table is the table of the leases, "leases" or "schema.leases". Processes exclude each
// other only in the same table. Default: gormlock_lease, or shedlock with [ShedLock].
func Table(name string) Option {
	return option(func(c *config) error {
		if _, err := quoteTable(name); err != nil {
			return err
		}
		return holder.Set(&c.table, name)
	})
}

// ShedLock keeps the leases in the table of ShedLock (usingDbTime), the lock of Spring's
// schedulers, with the same columns and conditions, so that Java and Go exclude each other.
// A key of one part gives its name as it is: lockkey.Of("nightly") is Java's "nightly".
// Several parts are joined by slashes. The table has no column for [Data], and none to wake
// waiters: they ask again and again. Only the Go side gets fencing tokens, see the package
// comment. Default: the table of [Schema].
func ShedLock() Option {
	return option(func(c *config) error { return holder.Set(&c.shedlock, true) })
}

// Observer gets every event of leases; a panic in it is caught. Default: none.
func Observer(o observe.Observer) Option {
	return option(func(c *config) error {
		if o == nil {
			return fmt.Errorf("%w: Observer(nil), leave it out for none", ErrOption)
		}
		return holder.Set(&c.observer, observe.Contain(o))
	})
}

// Listen wakes waiters when any process releases the lease: they ask the holder to notify
// them. It opens one session on l as soon as somebody waits. Default: waiters ask again,
// after 10 ms at first and later every 250 ms.
func Listen(l Listener) Option {
	return option(func(c *config) error {
		if absent.Is(l) {
			return fmt.Errorf("%w: Listen(nil), give it what sessionlock.Open returned", ErrOption)
		}
		return holder.Set(&c.listener, l)
	})
}
