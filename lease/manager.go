package lease

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/gormlock/gormlock/observe"
)

// Manager takes leases by a pool of connections and keeps them. Its methods may be called
// from any number of goroutines.
type Manager struct {
	db     *sql.DB
	config *config
	sql    *statements
	room   int // characters of a name in ShedLock's table, 0 is any number

	ctx    context.Context // of what runs in the background
	cancel context.CancelFunc
	wg     sync.WaitGroup
	kick   chan struct{} // wakes the tender

	mu      sync.Mutex
	closed  bool
	listens bool
	held    map[place]*Lease
	lines   map[place][]*waiter
	strays  []*stray
	asks    lane          // acquisitions
	returns lane          // releases
	dueAt   time.Duration // when the tender looks next, on the monotonic clock

}

// New returns a manager that holds no leases. ctx bounds the call only. db stays the
// caller's: it is never closed here, and one connection of it is used for as long as a
// statement runs. Work under a lease that keeps all connections of the pool busy keeps the
// renewals from being sent: leave one, or give the manager a pool of its own.
//
// It refuses what could not work, with an error that says what to do: [ErrStandby],
// [ErrReadOnly], and [ErrTable] for a table that is missing, lacks columns, keys or
// privileges, or is emptied by a crash.
func New(ctx context.Context, db *sql.DB, opts ...Option) (*Manager, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	m := &Manager{
		db: db, config: c, kick: make(chan struct{}, 1),
		held: map[place]*Lease{}, lines: map[place][]*waiter{},
	}
	if c.shedlock {
		m.sql = shedlockStatements(c.quotedTable())
	} else {
		m.sql = ownStatements(c.quotedTable())
	}
	m.asks = lane{m: m, text: m.sql.acquireMany, args: m.askArgs, scan: scanAsked, late: m.tooLate}
	m.returns = lane{m: m, text: m.sql.releaseFree, args: m.returnArgs, scan: scanReturned, late: func(*errand) {}}
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	m.ctx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
	m.wg.Go(m.tending)
	return m, nil
}

// Close gives back every lease in one statement. Holders are told first: their leases are
// lost, with the cause [ErrClosed], and whoever waits gets that error. It returns when the
// database has confirmed and nothing of the manager runs any more, or an error when ctx
// ended first; then the leases run out by themselves. AtLeast is kept. A second Close
// waits for the first and returns nil. The pool stays open.
func (m *Manager) Close(ctx context.Context) error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		m.wg.Wait()
		return nil
	}
	m.closed = true
	m.cancel()
	var left []listed
	var told []func()
	for _, l := range m.held {
		left = append(left, listed{l.claim, l.atLeast})
		told = append(told, m.lose(l, ErrClosed))
	}
	for _, s := range m.strays {
		left = append(left, s.listed)
	}
	m.strays = nil
	m.mu.Unlock()
	for _, tell := range told {
		tell()
	}
	m.wg.Wait()
	if len(left) == 0 {
		return nil
	}
	if _, err := m.giveBack(ctx, left); err != nil {
		return fmt.Errorf("gormlock: close: %d leases were not given back: %w", len(left), err)
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
