package sessionlock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/lookalike"
	"github.com/gormlock/gormlock/observe"
	"github.com/gormlock/gormlock/sessionlock/internal/dial"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// Option changes how a [Manager] works. The set is closed.
type Option interface {
	applyManager(*config) error
}

type option func(*config) error

func (o option) applyManager(c *config) error { return o(c) }

type config struct {
	owner         string
	heartbeat     time.Duration
	maxLocks      int // 0: from the server's lock table
	maxWaiters    int
	allowPooler   bool
	servers       []string
	observer      observe.Observer
	beforeConnect func(context.Context, *pgx.ConnConfig) error
}

func newConfig(opts []Option) (*config, error) {
	c := &config{heartbeat: 2 * time.Second, maxWaiters: 4}
	if err := holder.Apply("Open", opts, c, Option.applyManager); err != nil {
		return nil, err
	}
	if c.owner == "" {
		c.owner = holder.DefaultOwner()
	}
	return c, nil
}

// dialer returns a dialer with the options c, for a connection string that pgx has parsed.
func (c *config) dialer(parsed *pgx.ConnConfig) *dial.Dialer {
	return &dial.Dialer{
		Config: parsed.Copy(), Owner: c.owner, Heartbeat: c.heartbeat, AllowPooler: c.allowPooler, Servers: c.servers, BeforeConnect: c.beforeConnect,
		Refusals: dial.Refusals{Pooler: ErrPooler, Standby: ErrStandby, NoExclusion: ErrNoExclusion},
	}
}

// Owner names the manager for people: in pg_stat_activity (application_name), events
// and the inspector. Default: host name and process id.
func Owner(name string) Option {
	return option(func(c *config) error {
		if strings.ContainsRune(name, 0) {
			return fmt.Errorf("%w: Owner(%q) has a NUL byte", ErrOption, name)
		}
		return holder.Set(&c.owner, name)
	})
}

// Heartbeat is how often an idle session proves that it is alive. A silent network
// is a loss after three of them. It is at least a second, the unit of the server's
// own settings. Default: 2 seconds.
func Heartbeat(h time.Duration) Option {
	return option(func(c *config) error {
		if h < time.Second || h > time.Hour {
			return fmt.Errorf("%w: Heartbeat(%s) is not between a second and an hour", ErrOption, h)
		}
		return holder.Set(&c.heartbeat, h)
	})
}

// MaxLocks limits the keys that the manager holds or waits for. One more is
// [ErrTooManyLocks], without asking the server: all programs share its lock
// table. Default: 80 % of the table of the server, max_locks_per_transaction ×
// (max_connections + max_prepared_transactions).
func MaxLocks(n int) Option {
	return option(func(c *config) error {
		if n < 1 {
			return fmt.Errorf("%w: MaxLocks(%d) allows none", ErrOption, n)
		}
		return holder.Set(&c.maxLocks, n)
	})
}

// MaxWaiters limits the extra connections on which contended keys wait. A lock that
// was granted there stays there. Further keys ask again and again, which cannot
// succeed while others wait in the server's queue. Default: 4.
func MaxWaiters(n int) Option {
	return option(func(c *config) error {
		if n < 0 {
			return fmt.Errorf("%w: MaxWaiters(%d) is negative", ErrOption, n)
		}
		return holder.Set(&c.maxWaiters, n)
	})
}

// AllowPooler works behind a pooler that keeps one server connection for each client as
// long as it is connected (PgBouncer: pool_mode = session). Open still refuses any
// other. Default: every pooler is refused.
func AllowPooler() Option {
	return option(func(c *config) error { return holder.Set(&c.allowPooler, true) })
}

// AllowServer works on a server that only looks like PostgreSQL, by the name that [ErrServer] gives it, such as
// "YugabyteDB". Open still refuses it if it grants one lock to two sessions. It can be given several times. Default:
// [ErrServer].
func AllowServer(name string) Option {
	return option(func(c *config) error {
		if err := lookalike.Check(name); err != nil {
			return fmt.Errorf("%w: AllowServer: %w", ErrOption, err)
		}
		return holder.Set(&c.servers, append(c.servers, name))
	})
}

// Observer gets every event of locks; a panic in it is caught. Default: none.
func Observer(o observe.Observer) Option {
	return option(func(c *config) error {
		if o == nil {
			return fmt.Errorf("%w: Observer(nil), leave it out for none", ErrOption)
		}
		return holder.Set(&c.observer, observe.Contain(o))
	})
}

// BeforeConnect changes the configuration of each connection before it is made, for
// passwords that expire. Its error ends the attempt. Default: nothing.
func BeforeConnect(change func(ctx context.Context, c *pgx.ConnConfig) error) Option {
	return option(func(c *config) error {
		if change == nil {
			return fmt.Errorf("%w: BeforeConnect(nil), leave it out to change nothing", ErrOption)
		}
		return holder.Set(&c.beforeConnect, change)
	})
}

// AcquireOption changes how a lock is taken. The set is closed; an option holds no
// state, so one value can serve many calls.
type AcquireOption interface {
	applyAcquire(*request) error
}

type acquireOption func(*request) error

func (o acquireOption) applyAcquire(r *request) error { return o(r) }

// Shared takes the lock in shared mode: any number hold it together, and none
// exclusively. Default: exclusive.
func Shared() AcquireOption {
	return acquireOption(func(r *request) error { return holder.Set(&r.mode, wire.Shared) })
}

// Timeout limits the whole call. When it is over the call returns
// [ErrLockTimeout]. Default: only ctx limits it.
func Timeout(d time.Duration) AcquireOption {
	return acquireOption(func(r *request) error {
		r.timeout = d
		return holder.CheckTimeout(d)
	})
}

// Fenced issues a fencing token once the lock is held: [Lock.Token]. The lock must be exclusive, and the database must have
// the table of package fence: fence.Migrate. Default: no token.
func Fenced() AcquireOption {
	return acquireOption(func(r *request) error { return holder.Set(&r.fenced, true) })
}

// Fair never lets this caller jump ahead of other processes: the lock is not passed to it inside the process while other
// sessions wait. Each hand-over goes through the server, whose queue is first come, first served. Before this caller joins a
// shared lock, the manager asks the server. Waiters that only ask again and again, see [MaxWaiters], do not count. Default:
// up to 16 hand-overs inside the process before the server is asked.
func Fair() AcquireOption {
	return acquireOption(func(r *request) error { return holder.Set(&r.fair, true) })
}

// Try does not wait: a lock that somebody holds is [ErrNotAcquired] at once, as by [Manager.TryAcquire]. With
// [Manager.Do] the function runs only if the lock is free. Default: wait.
func Try() AcquireOption {
	return acquireOption(func(r *request) error { return holder.Set(&r.try, true) })
}
