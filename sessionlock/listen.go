package sessionlock

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Listen calls heard with the payload of every notification on channel that arrives on a
// connection of its own, and with "" when that connection is made or made again: what was
// notified before is not known. It returns when ctx ends, with its error, and when the
// manager is closed, with [ErrClosed]; a connection that is lost or cannot be made is
// tried again, with backoff. A silent network is noticed like that of a lock.
//
// It is what package lease borrows to wake its waiters.
func (m *Manager) Listen(ctx context.Context, channel string, heard func(payload string)) error {
	m.mu.Lock()
	if m.closed {
		m.unlock(nil)
		return ErrClosed
	}
	m.wg.Add(1)
	m.unlock(nil)
	defer m.wg.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(m.ctx, func() { cancel(ErrClosed) })
	defer stop()

	backoff := time.Duration(0)
	for {
		began := time.Now()
		m.listen(ctx, channel, heard)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Since(began) > maxBackoff {
			backoff = 0
		}
		backoff = longer(backoff)
		select {
		case <-ctx.Done():
		case <-time.After(jitter(backoff)):
		}
	}
}

// listen listens until its connection ends.
func (m *Manager) listen(ctx context.Context, channel string, heard func(payload string)) {
	conn, err := m.connectListener(ctx, channel, heard)
	if err != nil {
		return
	}
	defer drop(conn)
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()).ReadAll(); err != nil {
		return
	}
	heard("")
	for ctx.Err() == nil && !conn.IsClosed() {
		waiting, stop := context.WithTimeout(ctx, m.config.heartbeat)
		err := conn.WaitForNotification(waiting)
		quiet := waiting.Err() != nil
		stop()
		if err != nil && !quiet {
			return
		}
		if quiet && !m.answers(ctx, conn) {
			return
		}
	}
}

// answers reports whether the server does, in the time after which a session is lost.
func (m *Manager) answers(ctx context.Context, conn *pgconn.PgConn) bool {
	ctx, cancel := context.WithTimeout(ctx, m.patience())
	defer cancel()
	_, err := conn.Exec(ctx, "").ReadAll()
	return err == nil
}

// connectListener is connect with an ear for notifications.
func (m *Manager) connectListener(ctx context.Context, channel string, heard func(payload string)) (*pgconn.PgConn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c := m.dsn.Copy()
	if m.config.beforeConnect != nil {
		if err := m.config.beforeConnect(ctx, c); err != nil {
			return nil, fmt.Errorf("gormlock: before connect: %w", err)
		}
	}
	c.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) {
		if n.Channel == channel {
			heard(n.Payload)
		}
	}
	conn, err := pgconn.ConnectConfig(ctx, &c.Config)
	if err != nil {
		return nil, fmt.Errorf("gormlock: %w", err)
	}
	f, err := look(ctx, conn)
	if err == nil {
		err = m.admit(ctx, conn, f)
	}
	if err == nil {
		err = m.set(ctx, conn, f, home)
	}
	if err != nil {
		drop(conn)
		return nil, err
	}
	return conn, nil
}
