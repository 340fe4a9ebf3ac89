package sessionlock

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	dialTimeout = 10 * time.Second
	minBackoff  = 20 * time.Millisecond
	maxBackoff  = 5 * time.Second
	flapBackoff = time.Second // before a server that lets us in and throws us out
	// socketBuffer holds two flights, so that writing one never waits for the server.
	socketBuffer = 256 << 10
)

// dial makes a session that belongs to nobody yet.
func (m *Manager) dial(ctx context.Context, r role) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, facts, err := m.connect(ctx)
	if err != nil {
		return nil, err
	}
	s, err := m.furnish(ctx, conn, facts, r)
	if err != nil {
		drop(conn)
		return nil, err
	}
	return s, nil
}

// connect connects and looks whom it met. Nothing is set before that, because behind a
// transaction pooler a setting stays with a connection that others use.
func (m *Manager) connect(ctx context.Context) (*pgconn.PgConn, *facts, error) {
	c := m.dsn.Copy()
	if m.config.beforeConnect != nil {
		if err := m.config.beforeConnect(ctx, c); err != nil {
			return nil, nil, fmt.Errorf("gormlock: before connect: %w", err)
		}
	}
	conn, err := pgconn.ConnectConfig(ctx, &c.Config)
	if err != nil {
		return nil, nil, fmt.Errorf("gormlock: %w", err)
	}
	f, err := look(ctx, conn)
	if err == nil {
		err = m.admit(ctx, conn, f)
	}
	if err != nil {
		drop(conn)
		return nil, nil, err
	}
	return conn, f, nil
}

// admit refuses servers on which a session lock would lie.
func (m *Manager) admit(ctx context.Context, conn *pgconn.PgConn, f *facts) error {
	switch {
	case f.standby:
		return fmt.Errorf("%w: connect to the primary, with target_session_attrs=read-write where the address names several servers", ErrStandby)
	case m.config.allowPooler:
		return m.admitPooled(ctx, conn, f)
	case int(conn.PID()) != f.pid:
		return fmt.Errorf("%w: the connection says backend %d, the server says %d: connect to PostgreSQL itself, or to a pooler in session mode with AllowPooler", ErrPooler, conn.PID(), f.pid)
	}
	return nil
}

// admitPooled asks twice: a connection that changes its backend is no session.
func (m *Manager) admitPooled(ctx context.Context, conn *pgconn.PgConn, f *facts) error {
	pid, err := backend(ctx, conn)
	if err == nil && pid != f.pid {
		err = errUnsteady
	}
	return err
}

// furnish prepares a connection for its role and takes it out of pgx's hands.
func (m *Manager) furnish(ctx context.Context, conn *pgconn.PgConn, f *facts, r role) (*session, error) {
	began := time.Now()
	if err := m.set(ctx, conn, f, r); err != nil {
		return nil, err
	}
	if err := prepare(ctx, conn, r); err != nil {
		return nil, err
	}
	if err := conn.SyncConn(ctx); err != nil {
		return nil, fmt.Errorf("gormlock: %w", err)
	}
	hijacked, err := conn.Hijack()
	if err != nil {
		return nil, fmt.Errorf("gormlock: %w", err)
	}
	if tcp, ok := bare(hijacked.Conn).(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(socketBuffer) // a smaller one can make a write wait, no more
	}
	if err := hijacked.Conn.SetDeadline(time.Time{}); err != nil {
		return nil, fmt.Errorf("gormlock: %w", err)
	}
	return &session{
		m: m, role: r, conn: hijacked.Conn, reader: hijacked.Frontend, pid: f.pid, facts: f,
		sent: began, proof: began,
		kick: make(chan struct{}, 1), gone: make(chan struct{}),
	}, nil
}

// reconnect makes a new home, however long it takes. It begins at once, unless the last
// one was short-lived.
func (m *Manager) reconnect() {
	m.mu.Lock()
	if time.Since(m.homeSince) > m.config.heartbeat {
		m.backoff = 0
	}
	backoff := m.backoff
	m.backoff = min(longer(backoff), flapBackoff)
	m.unlock(nil)
	if backoff > 0 {
		m.wait(backoff)
	}
	for {
		s, err := m.dial(m.ctx, home)
		m.mu.Lock()
		if err == nil {
			if m.adopt(s) {
				m.home, m.homeSince = s, time.Now()
				m.dialError = nil
				for _, e := range m.ledger {
					if e.state == asking && e.s == nil {
						m.ask(e)
					}
				}
				m.pollSoon()
				m.fillSlots()
			}
			m.unlock(nil)
			return
		}
		m.dialError = err
		for _, e := range m.ledger {
			if e.state == asking && e.s == nil {
				m.refuseParked(e, err)
			}
		}
		m.unlock(nil)
		if m.ctx.Err() != nil {
			return
		}
		backoff = m.pause(backoff)
	}
}

// pause waits longer than the last time, which it returns, or until the manager is closed.
func (m *Manager) pause(last time.Duration) time.Duration {
	next := longer(last)
	m.wait(next)
	return next
}

func longer(backoff time.Duration) time.Duration {
	return min(max(2*backoff, minBackoff), maxBackoff)
}

func (m *Manager) wait(d time.Duration) {
	select {
	case <-m.ctx.Done():
	case <-time.After(jitter(d)):
	}
}

// refuseParked answers those who do not wait.
func (m *Manager) refuseParked(e *entry, cause error) {
	for w := e.queue.first; w != nil; {
		next := w.next
		if w.try {
			e.queue.remove(w)
			m.settle(w, &lockError{key: w.key, state: cause})
		}
		w = next
	}
	if e.queue.first == nil {
		m.drop(e)
	}
}

// adopt makes a dialled session one of the manager's. It is called with mu held and
// reports false when the manager is closed. A session of another server than the others' means
// that the address leads elsewhere now: what is held on the old one excludes nobody.
func (m *Manager) adopt(s *session) bool {
	if m.closed {
		m.told = append(m.told, func() { hangUp(s.conn, true) })
		return false
	}
	for _, other := range append([]*session(nil), m.sessions...) {
		if other.facts.server != s.facts.server {
			m.lose(other, fmt.Errorf("gormlock: the address leads to another server now: %s, before %s", s.facts.server, other.facts.server))
		}
	}
	m.sessions = append(m.sessions, s)
	m.wg.Go(s.watch)
	m.tendSoon()
	return true
}

// hangUp closes a connection, after a word to the server if polite, and never waits.
func hangUp(c net.Conn, polite bool) {
	if polite {
		goodbye, _ := (&pgproto3.Terminate{}).Encode(nil)
		_ = c.SetWriteDeadline(time.Now().Add(idle))
		_, _ = c.Write(goodbye)
	}
	_ = bare(c).Close()
}

func bare(c net.Conn) net.Conn {
	if t, ok := c.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c
}

// drop closes a connection that never became a session.
func drop(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // closed either way
}

// jitter is d, a quarter more or less, so that processes do not march in step.
func jitter(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2+1)
}
