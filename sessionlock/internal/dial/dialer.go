package dial

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

// timeout bounds how long it may take to open one connection.
const timeout = 10 * time.Second

// Dialer makes connections.
type Dialer struct {
	Config        *pgx.ConnConfig
	Owner         string        // for application_name
	Heartbeat     time.Duration // how often an idle session proves that it lives
	AllowPooler   bool
	Servers       []string                                     // look-alikes of PostgreSQL that are allowed
	BeforeConnect func(context.Context, *pgx.ConnConfig) error // nil for none
	Refusals      Refusals
}

// Silence is how long a session is believed after the last proof that it lives.
func (d *Dialer) Silence() time.Duration { return 3 * d.Heartbeat }

// Link is a connection that is ready for its role.
type Link struct {
	Conn   *wire.Conn
	Server *Server
	Since  time.Time // when the first message was sent that was answered
}

// Dial makes a connection for a role.
func (d *Dialer) Dial(ctx context.Context, r wire.Role) (*Link, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, server, err := d.connect(ctx, nil)
	if err != nil {
		return nil, err
	}
	return d.link(ctx, conn, server, r)
}

// First makes the first connection, for the role Home, after a probe beside a second one.
func (d *Dialer) First(ctx context.Context) (*Link, error) {
	conn, server, err := d.connect(ctx, nil)
	if err != nil {
		return nil, err
	}
	if err := d.probe(ctx, conn, server); err != nil {
		drop(conn)
		return nil, err
	}
	return d.link(ctx, conn, server, wire.Home)
}

func (d *Dialer) probe(ctx context.Context, conn *pgconn.PgConn, server *Server) error {
	second, other, err := d.connect(ctx, nil)
	if err != nil {
		return err
	}
	defer drop(second)
	if other.ID != server.ID {
		return fmt.Errorf("%w: two connections led to two servers: %s, and %s", d.Refusals.NoExclusion, server.ID, other.ID)
	}
	if d.AllowPooler {
		if err := d.Refusals.steady(ctx, conn, second); err != nil {
			return err
		}
	}
	return d.Refusals.exclusive(ctx, conn, second)
}

// connect connects and looks at the server. It sets nothing before, because behind a transaction pooler a setting stays
// on a server connection that others use.
func (d *Dialer) connect(ctx context.Context, notified pgconn.NotificationHandler) (*pgconn.PgConn, *Server, error) {
	c := d.Config.Copy()
	if d.BeforeConnect != nil {
		if err := d.BeforeConnect(ctx, c); err != nil {
			return nil, nil, fmt.Errorf("gormlock: before connect: %w", err)
		}
	}
	if notified != nil {
		c.OnNotification = notified
	}
	conn, err := pgconn.ConnectConfig(ctx, &c.Config)
	if err != nil {
		return nil, nil, fmt.Errorf("gormlock: %w", err)
	}
	server, err := look(ctx, conn)
	if err == nil {
		err = d.Refusals.admit(ctx, conn, server, d.AllowPooler, d.Servers)
	}
	if err != nil {
		drop(conn)
		return nil, nil, err
	}
	return conn, server, nil
}

// link prepares a connection for its role and takes it away from pgx. If it cannot prepare it, it closes it.
func (d *Dialer) link(ctx context.Context, conn *pgconn.PgConn, server *Server, r wire.Role) (*Link, error) {
	l := &Link{Server: server, Since: time.Now()}
	err := d.set(ctx, conn, server, r)
	if err == nil {
		err = wire.Prepare(ctx, conn, r)
	}
	if err == nil {
		l.Conn, err = hijack(ctx, conn)
	}
	if err != nil {
		drop(conn)
		return nil, err
	}
	return l, nil
}

func hijack(ctx context.Context, conn *pgconn.PgConn) (*wire.Conn, error) {
	if err := conn.SyncConn(ctx); err != nil {
		return nil, fmt.Errorf("gormlock: %w", err)
	}
	hijacked, err := conn.Hijack()
	if err != nil {
		return nil, fmt.Errorf("gormlock: %w", err)
	}
	c, err := wire.NewConn(hijacked)
	if err != nil {
		_ = hijacked.Conn.Close()
		return nil, fmt.Errorf("gormlock: %w", err)
	}
	return c, nil
}

// drop closes a connection that never became a session.
func drop(conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // closed either way
}
