package sessionlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/otherdb"
	"github.com/gormlock/gormlock/sessionlock/internal/dial"
)

// Manager holds session locks on connections of its own. Its methods may be called from
// any number of goroutines.
type Manager struct {
	core     *core
	dialer   *dial.Dialer
	reporter *reporter
}

// Open connects to the server and returns a manager that holds no locks. ctx is only
// for this call.
//
// It refuses a server on which a session lock would exclude nobody, with an error
// that says what to do: [ErrPooler], [ErrStandby], [ErrNoExclusion]. A connection string of
// another database is advisory.ErrNotPostgres, and nothing is connected to.
func Open(ctx context.Context, dsn string, opts ...Option) (*Manager, error) {
	if other := otherdb.Named(dsn); other != nil {
		return nil, other.Refusal(what, nil)
	}
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("gormlock: %w", err)
	}
	return OpenConfig(ctx, c, opts...)
}

// OpenConfig is [Open] for a configuration that pgx has parsed. It is copied.
func OpenConfig(ctx context.Context, dsn *pgx.ConnConfig, opts ...Option) (*Manager, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if dsn == nil {
		return nil, fmt.Errorf("%w: OpenConfig of a nil *pgx.ConnConfig, give it what pgx.ParseConfig returned", ErrOption)
	}
	if err := ofPostgres(dsn); err != nil {
		return nil, err
	}
	d := c.dialer(dsn)
	first, err := d.First(ctx)
	if err != nil {
		return nil, err
	}
	k := newCore(ctx, d, c)
	k.start(first)
	return &Manager{core: k, dialer: d, reporter: k.ledger.reporter}, nil
}

// What this package needs, for error texts.
const what = "session locks"

// ofPostgres refuses the connection string of another database. pgx would take everything before the first = for the name
// of a setting, and send it, with its password, to the server that the environment names.
func ofPostgres(c *pgx.ConnConfig) error {
	if other := otherdb.Named(c.ConnString()); other != nil {
		return other.Refusal(what, nil)
	}
	for name := range c.RuntimeParams {
		if !otherdb.IsKeyword(name) {
			return errors.New("gormlock: this is no connection string of PostgreSQL: write postgres://user@host/database, or host=… user=… dbname=…")
		}
	}
	return nil
}

// Close releases every lock and ends every connection. Before that the locks count as
// lost, with the cause [ErrClosed], and waiting callers get that error. It returns when
// the server has confirmed and nothing of the manager runs any more. A second after ctx
// has ended, or after the time in which a loss is noticed, it returns an error at the
// latest; then the server frees the locks when it notices that the connections are gone. A
// second Close only waits in the same way.
func (m *Manager) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, m.dialer.Silence(), fmt.Errorf("%w for %s", errSilent, m.dialer.Silence()))
	defer cancel()
	return errors.Join(m.core.close(ctx), m.core.life.awaitEnd(ctx))
}

// Listen calls heard with the payload of every notification on channel that arrives on a
// connection of its own, and with "" when that connection is made or made again, because
// earlier notifications may have been missed. It returns the error of ctx when ctx ends,
// and [ErrClosed] when the manager is closed. A connection that is lost or cannot be made
// is tried again, with backoff. A silent network is noticed as for a lock.
//
// Package lease uses it to wake waiters.
func (m *Manager) Listen(ctx context.Context, channel string, heard func(payload string)) error {
	if heard == nil {
		return fmt.Errorf("%w: Listen with a nil function, which hears nothing", ErrOption)
	}
	return m.core.life.during(ctx, m.core, func(ctx context.Context) {
		var b backoff
		for ctx.Err() == nil {
			began := time.Now()
			m.dialer.Listen(ctx, channel, heard)
			if time.Since(began) > maxBackoff {
				b = 0
			}
			select {
			case <-ctx.Done():
			case <-time.After(holder.Jitter(b.next())):
			}
		}
	})
}
