package dial

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// Listen calls heard with the payload of every notification on channel that arrives on one connection, and with "" when
// that listens. It returns when the connection cannot be made, has ended or is silent, and when ctx ends.
func (d *Dialer) Listen(ctx context.Context, channel string, heard func(payload string)) {
	conn, err := d.connectListener(ctx, func(_ *pgconn.PgConn, n *pgconn.Notification) {
		if n.Channel == channel {
			heard(n.Payload)
		}
	})
	if err != nil {
		return
	}
	defer drop(conn)
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize()).ReadAll(); err != nil {
		return
	}
	heard("")
	for ctx.Err() == nil && !conn.IsClosed() {
		waiting, stop := context.WithTimeout(ctx, d.Heartbeat)
		err := conn.WaitForNotification(waiting)
		quiet := waiting.Err() != nil
		stop()
		if err != nil && !quiet {
			return
		}
		if quiet && !answers(ctx, conn, d.Silence()) {
			return
		}
	}
}

func (d *Dialer) connectListener(ctx context.Context, notified pgconn.NotificationHandler) (*pgconn.PgConn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, server, err := d.connect(ctx, notified)
	if err != nil {
		return nil, err
	}
	if err := d.set(ctx, conn, server, wire.Home); err != nil {
		drop(conn)
		return nil, err
	}
	return conn, nil
}

// answers reports whether the server answers in time.
func answers(ctx context.Context, conn *pgconn.PgConn, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := conn.Exec(ctx, "").ReadAll()
	return err == nil
}
