package sessionlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Manager holds session locks on connections of its own. Its methods may be called from
// any number of goroutines.
type Manager struct {
	dsn    *pgx.ConnConfig
	config *config
	slice  time.Duration // how long a session waits for one key

	ctx    context.Context // of what runs in the background
	cancel context.CancelFunc
	wg     sync.WaitGroup
	tend   chan struct{} // wakes the tender

	arrivals atomic.Pointer[waiter] // the last of those that whoever holds mu is to let in
	standing atomic.Int32           // how many of them did not try for mu
	landing  atomic.Bool            // nobody need try for mu: see leave
	late     *time.Timer            // ends landing

	mu       sync.Mutex
	maxLocks int
	closed   bool
	ledger   map[lockID]*entry
	entries  []*entry   // not in use
	room     []*entry   // those that are waiting, longest first
	home     *session   // nil while there is none
	free     []*session // of role waits, that wait for nothing
	issuer   *session   // of role numbers
	issues   []*issuing // not sent yet
	later    []*issuing // to be sent again at issueAt
	sessions []*session // all that live

	extras    int // sessions of role waits
	dialing   int // of them
	pollAt    time.Time
	wondered  time.Time // when the server was last asked who waits
	curious   bool      // it is to be asked again with the next poll
	issueAt   time.Time
	issuerDue bool // a session of role numbers is being dialled
	dialAfter time.Time
	farewells int // unlockAll not answered
	emptied   chan struct{}

	// Why there is no home or nothing to wait on, or nothing to issue tokens.
	dialError, issuerError error

	homeSince time.Time
	backoff   time.Duration // before the next home is dialled

	// For unlock to see to.
	dirty   []*session
	settled int             // how many are to be woken
	heads   []chan struct{} // of those that are woken by unlock itself
	spare   []chan struct{} // empty, for the next heads
	lanes   []*lane         // whose first is woken by unlock
	told    []func()

	lanePool sync.Pool // one lane for each processor
}

// Open connects to the server and returns a manager that holds no locks. ctx bounds the
// call only.
//
// It refuses a server on which a session lock would lie, with an error that says what
// to do: [ErrPooler], [ErrStandby], [ErrNoExclusion].
func Open(ctx context.Context, dsn string, opts ...Option) (*Manager, error) {
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
	m := &Manager{
		dsn: dsn.Copy(), config: c, ledger: map[lockID]*entry{},
		tend: make(chan struct{}, 1), emptied: make(chan struct{}),
	}
	m.late = time.AfterFunc(landingTime, m.overdue)
	m.ctx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s, err := m.first(ctx)
	if err != nil {
		m.cancel()
		return nil, err
	}
	m.slice = min(maxSlice, time.Duration(s.facts.number("deadlock_timeout"))*time.Millisecond*4/5)
	m.maxLocks = c.maxLocks
	if m.maxLocks == 0 {
		m.maxLocks = s.facts.tableSize() * 4 / 5
	}
	m.mu.Lock()
	m.adopt(s)
	m.home, m.homeSince = s, time.Now()
	m.wg.Go(m.tending)
	m.unlock(nil)
	return m, nil
}

// first dials the first session, after a probe beside a second connection.
func (m *Manager) first(ctx context.Context) (*session, error) {
	a, facts, err := m.connect(ctx)
	if err != nil {
		return nil, err
	}
	s, err := m.probed(ctx, a, facts)
	if err != nil {
		drop(a)
		return nil, err
	}
	return s, nil
}

func (m *Manager) probed(ctx context.Context, a *pgconn.PgConn, f *facts) (*session, error) {
	b, other, err := m.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer drop(b)
	if other.server != f.server {
		return nil, fmt.Errorf("%w: two connections led to two servers: %s, and %s", ErrNoExclusion, f.server, other.server)
	}
	if err := probe(ctx, a, b, m.config.allowPooler); err != nil {
		return nil, err
	}
	return m.furnish(ctx, a, f, home)
}

var (
	// errUnconfirmed says that Close did not hear from a server.
	errUnconfirmed = errors.New("gormlock: close: not every session confirmed that it holds nothing")
	// errRunning says that Close did not wait for what it has no hold of.
	errRunning = errors.New("gormlock: close: a function of BeforeConnect, Observer or Listen has not returned")
)

// Close gives back every lock and ends every connection. Holders are told first: their
// locks are lost, with the cause [ErrClosed], and whoever waits gets that error. It
// returns when the server has confirmed and nothing of the manager runs any more, and at
// the latest a second after ctx has ended or the time of a loss has passed, with an error;
// then the server frees the locks when it notices that the connections are gone. A second
// Close gives nothing back but waits in the same way.
func (m *Manager) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, m.patience(), fmt.Errorf("%w for %s", errSilent, m.patience()))
	defer cancel()
	m.mu.Lock()
	if m.closed {
		m.unlock(nil)
		return m.ended(ctx)
	}
	m.closed = true
	m.cancel()
	for _, e := range m.ledger {
		m.closeEntry(e)
	}
	m.failIssues(ErrClosed)
	m.sayFarewell()
	m.unlockAside() // a write may wait longer than we do

	var err error
	select {
	case <-m.emptied:
	case <-ctx.Done():
		err = fmt.Errorf("%w: %w", errUnconfirmed, context.Cause(ctx))
	}
	m.mu.Lock()
	for len(m.sessions) > 0 {
		m.lose(m.sessions[0], ErrClosed)
	}
	m.late.Stop()
	m.unlock(nil)
	if running := m.ended(ctx); running != nil {
		return errors.Join(err, running)
	}
	return err
}

// lastMoment is how long Close goes on when its time is over, for what ends at once.
const lastMoment = time.Second

// ended returns when nothing of the manager runs any more. What waits for a network has
// been told to end by then; code of others may take its time.
func (m *Manager) ended(ctx context.Context) error {
	over := make(chan struct{})
	go func() {
		m.wg.Wait()
		close(over)
	}()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-over:
		return nil
	case <-time.After(lastMoment):
		return errRunning
	}
}

// closeEntry tells whoever waits for e and whoever holds it.
func (m *Manager) closeEntry(e *entry) {
	for w := e.queue.first; w != nil; w = e.queue.first {
		e.queue.remove(w)
		m.refuse(w, ErrClosed, nil)
	}
	for l := e.holder; l != nil; l = e.holder {
		m.forget(l)
		m.loseLock(l, ErrClosed)
	}
}

// sayFarewell makes each session give back what it holds. A session that waits for a
// lock is not waited for.
func (m *Manager) sayFarewell() {
	for _, s := range append([]*session(nil), m.sessions...) {
		if s.role == numbers || s.role == waits && s.isWaiting() {
			m.lose(s, ErrClosed)
			continue
		}
		s.single = part{statement: unlockAll}
		s.farewell = true
		m.farewells++
		m.touch(s)
	}
	if m.farewells == 0 {
		close(m.emptied)
	}
}

// farewell is counted for a session that has answered unlockAll or is dead.
func (m *Manager) farewell(s *session) {
	s.farewell = false
	m.farewells--
	if m.farewells == 0 {
		close(m.emptied)
	}
}
