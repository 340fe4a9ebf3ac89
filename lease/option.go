package lease

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gormlock/gormlock/observe"
)

const (
	// minRenewed is the shortest lease that is renewed: three tries have to fit into it.
	minRenewed = 100 * time.Millisecond
	// minTTL is the shortest lease of all: the answer has to arrive within it.
	minTTL = 10 * time.Millisecond
	// maxName is how many bytes a key's name may have.
	maxName = 1024
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
	clock    func() instant
}

func newConfig(opts []Option) (*config, error) {
	c := &config{clock: clock}
	for _, o := range opts {
		if err := o.applyManager(c); err != nil {
			return nil, err
		}
	}
	if c.owner == "" {
		host, _ := os.Hostname()
		c.owner = host + ":" + strconv.Itoa(os.Getpid())
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

// AcquireOption changes how a lease is taken. The set is closed; an option holds no
// state, so one value can serve many calls.
type AcquireOption interface {
	applyAcquire(*request) error
}

type acquireOption func(*request) error

func (o acquireOption) applyAcquire(r *request) error { return o(r) }

// AtLeast keeps the lease taken until d after it was acquired, even when it is released
// before or its holder dies: a job that many schedulers start runs once, however short it
// is and however far their clocks are apart. d is at most the length of the lease.
// Default: 0.
func AtLeast(d time.Duration) AcquireOption {
	return acquireOption(func(r *request) error {
		if d < 0 {
			return fmt.Errorf("%w: AtLeast(%s) is negative", ErrOption, d)
		}
		r.atLeast = d
		return nil
	})
}

// NoRenewal lets the lease run out unless [Lease.Renew] is called: the work is bounded,
// however the process behaves. Default: renewed after a third of its length, as long as
// the manager lives.
func NoRenewal() AcquireOption {
	return acquireOption(func(r *request) error {
		r.noRenewal = true
		return nil
	})
}

// Timeout is the budget of the whole call, past which it answers [ErrLockTimeout].
// Default: none but that of ctx.
func Timeout(d time.Duration) AcquireOption {
	return acquireOption(func(r *request) error {
		if d <= 0 {
			return fmt.Errorf("%w: Timeout(%s) leaves no time, use TryAcquire to not wait", ErrOption, d)
		}
		r.timeout = d
		return nil
	})
}

// Data is stored with the lease, for others to read with [Manager.Holder]: the address of
// a leader. It is copied. Default: none.
func Data(data []byte) AcquireOption {
	data = append([]byte{}, data...)
	return acquireOption(func(r *request) error {
		r.data = data
		return nil
	})
}

var errDataInShedLock = errors.New("gormlock: Data: ShedLock's table has no room for it")

// checkRequest refuses what no option can see alone.
func (c *config) checkRequest(r *request) error {
	least := minRenewed
	if r.noRenewal {
		least = minTTL
	}
	switch {
	case r.ttl <= 0:
		return fmt.Errorf("%w: a lease of %s is none", ErrOption, r.ttl)
	case r.ttl < least:
		return fmt.Errorf("%w: a lease of %s is shorter than %s, the least that can be kept", ErrOption, r.ttl, least)
	case r.atLeast > r.ttl:
		return fmt.Errorf("%w: AtLeast(%s) is longer than the lease of %s, which ends first when its holder dies", ErrOption, r.atLeast, r.ttl)
	case r.data != nil && c.shedlock:
		return fmt.Errorf("%w: %w", ErrOption, errDataInShedLock)
	}
	return nil
}
