package lease

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/otherdb"
	"github.com/gormlock/gormlock/observe"
)

// Manager acquires leases through a pool of connections, and renews them. Its methods may
// be called from any number of goroutines.
type Manager struct {
	config *config
	store  *store

	holdings      *holdings      // what is held
	renewals      *renewals      // renew it
	unconfirmed   *unconfirmed   // acquisitions that may be in the table although nobody holds them
	freed         *freed         // what it released last
	waiters       *waiters       // who waits in this process
	notifications *notifications // wake them when another process releases
	acquires      *batcher
	releases      *batcher
	background    *background
}

// New returns a manager that holds no leases. ctx is only for this call. New does not
// close db, and uses one of its connections while a statement runs. If work under a lease
// keeps all connections of the pool busy, renewals cannot be sent: leave one free, or give
// the manager a pool of its own.
//
// It refuses what cannot work, with an error that says what to do: [ErrStandby],
// [ErrReadOnly], and [ErrTable] for a table that is missing, lacks columns, keys or
// privileges, or is emptied by a crash. A database other than PostgreSQL is
// advisory.ErrNotPostgres.
func New(ctx context.Context, db *sql.DB, opts ...Option) (*Manager, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, fmt.Errorf("%w: New on a nil *sql.DB, give it what sql.Open returned", ErrOption)
	}
	if other := otherdb.Under(db); other != nil {
		return nil, other.Refusal("leases in "+c.tableName(), nil)
	}
	clock := holder.ClockOf(ctx)
	s := &store{&server{db: db, clock: clock}, newTable(c)}
	if err := (&checker{s, c}).check(ctx); err != nil {
		return nil, err
	}
	m := newManager(ctx, c, s)
	m.background.start(func() { m.background.watch(clock, m.lookForDue) })
	return m, nil
}

// newManager puts the parts together.
func newManager(ctx context.Context, c *config, s *store) *Manager {
	m := &Manager{config: c, store: s, background: newBackground(ctx), waiters: &waiters{}, freed: &freed{}}
	m.holdings = &holdings{clock: s.clock, wakeBy: m.background.wakeBy, observe: m.observe, held: map[holder.Place]*Lease{}}
	m.renewals = &renewals{store: s, holdings: m.holdings, background: m.background}
	m.unconfirmed = &unconfirmed{store: s, waiters: m.waiters, background: m.background}
	m.notifications = &notifications{waiters: m.waiters, background: m.background}
	m.acquires = &batcher{background: m.background, slow: slowStatement, late: m.returnLate}
	m.releases = &batcher{background: m.background, slow: slowStatement, late: func(*call) {}}
	if !c.shedlock { // ShedLock's table has no such statements
		m.notifications.listener = c.listener
		m.acquires.send, m.releases.send = s.acquireMany, s.releaseMany
	}
	return m
}

// lookForDue renews the leases that are due, and releases the unconfirmed acquisitions that are due. It returns when the next ones are due.
func (m *Manager) lookForDue(now holder.Instant) (due time.Duration) {
	batch, refused, renewAt, told := m.holdings.due(now)
	items, searchAt := m.unconfirmed.due(now.Mono)
	if len(told) > 0 && m.config.observer != nil {
		go func() { // so a slow observer delays no look
			for _, tell := range told {
				tell()
			}
		}()
	}
	for _, leases := range [][]*Lease{batch, refused} {
		if len(leases) > 0 {
			m.background.start(func() { m.renewals.renewDue(leases) })
		}
	}
	if len(items) > 0 {
		m.background.start(func() { m.unconfirmed.giveBack(items) })
	}
	return min(renewAt, searchAt)
}

// closeWithin bounds Close if its ctx does not: a silent network would block it for ever.
const closeWithin = 10 * time.Second

// Close releases every lease in one statement. Before that the leases count as lost, with
// the cause [ErrClosed], and waiting callers get that error. It returns when the database
// has confirmed and nothing of the manager runs any more. When ctx ends, or after ten
// seconds without an answer, it returns an error, and the leases run out by themselves.
// AtLeast is kept. A second Close waits for the first in the same way, and returns nil. The
// pool stays open.
func (m *Manager) Close(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, closeWithin)
	defer cancel()
	left, told, first := m.holdings.close()
	if !first {
		select {
		case <-m.background.over:
			return nil
		case <-asking.Done():
			return fmt.Errorf("gormlock: close: the first Close has not ended: %w", unanswered(ctx, asking, closeWithin, asking.Err()))
		}
	}
	defer close(m.background.over)
	m.acquires.close() // before the background, which sends gathered calls
	m.releases.close()
	m.background.close()
	left = append(left, m.unconfirmed.close()...)
	for _, tell := range told {
		tell()
	}
	m.background.wait()
	if len(left) == 0 {
		return nil
	}
	if _, failed, err := m.store.release(asking, left); err != nil {
		return fmt.Errorf("gormlock: close: %d leases were not released, they end by themselves: %w", failed, unanswered(ctx, asking, closeWithin, err))
	}
	return nil
}

func (m *Manager) observe(ctx context.Context, e observe.Event) {
	if m.config.observer == nil {
		return
	}
	e.Source, e.Owner, e.Table = "lease", m.config.owner, m.config.tableName()
	m.config.observer.Observe(ctx, e)
}
