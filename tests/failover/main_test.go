// Package failover_test kills primaries and promotes their standbys under leases, session
// locks and fenced writes.
package failover_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/sessionlock"
)

// bound is how long a wait for something that will happen may take on a slow machine.
const bound = time.Minute

func TestMain(m *testing.M) { pgtest.Main(m) }

// pair is a primary and its streaming standby, with a proxy between the two.
type pair struct {
	t       testing.TB
	primary *pgserver.Server
	standby *pgserver.Server
	link    *wiretap.Proxy
	dsn     string // of whichever of the two takes writes
}

// newPair makes a primary with the tables of leases and registers, and its standby.
func newPair(t testing.TB) *pair {
	t.Helper()
	p := &pair{t: t, primary: pgtest.Fresh(t)}
	db := pgtest.SQLDB(t, pgtest.Through(p.primary.DSN("postgres")))
	if err := lease.Migrate(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	p.exec(db, "CREATE TABLE registers (id int PRIMARY KEY, writer text NOT NULL); INSERT INTO registers SELECT i, 'nobody' FROM generate_series(1, 100) i")
	var err error
	if p.link, err = wiretap.Listen(net.JoinHostPort(p.primary.Host(), fmt.Sprint(p.primary.Port()))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.link.Close() })
	host, port, _ := net.SplitHostPort(p.link.Addr())
	p.standby = pgtest.Standby(t, p.primary,
		pgserver.Setting("primary_conninfo", fmt.Sprintf("host=%s port=%s user=postgres sslmode=disable application_name=follower", host, port)),
		pgserver.Setting("wal_retrieve_retry_interval", "100ms"))
	u, err := url.Parse(p.primary.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	// Both of them, as a client that is to survive a failover names them.
	u.Host = fmt.Sprintf("%s:%d,%s:%d", p.primary.Host(), p.primary.Port(), p.standby.Host(), p.standby.Port())
	p.dsn = u.String() + "&target_session_attrs=read-write&connect_timeout=2"
	return p
}

func (p *pair) exec(db *sql.DB, statement string) {
	p.t.Helper()
	if _, err := db.ExecContext(p.t.Context(), statement); err != nil {
		p.t.Fatal(err)
	}
}

// synchronous makes the primary wait for its standby with every commit.
func (p *pair) synchronous() {
	p.t.Helper()
	db := pgtest.SQLDB(p.t, pgtest.Through(p.primary.DSN("postgres")))
	pgtest.MakeCommitsWait(p.t, db)
	p.exec(db, "ALTER SYSTEM SET synchronous_standby_names = '*'")
	p.exec(db, "SELECT pg_reload_conf()")
	eventually(p.t, "a synchronous standby", func() bool {
		var n int
		err := db.QueryRowContext(p.t.Context(), "SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')").Scan(&n)
		return err == nil && n == 1
	})
}

// disconnect keeps the standby from receiving anything more.
func (p *pair) disconnect() {
	p.link.Refuse()
	p.link.Cut()
}

// fail kills the primary and promotes the standby.
func (p *pair) fail() {
	p.t.Helper()
	if err := p.primary.Crash(); err != nil {
		p.t.Fatal(err)
	}
	if err := p.standby.Promote(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

// pool is one that finds whichever server takes writes.
func (p *pair) pool() *sql.DB {
	p.t.Helper()
	db, err := sql.Open("pgx", p.dsn)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = db.Close() })
	return db
}

func (p *pair) leases(opts ...lease.Option) *lease.Manager {
	p.t.Helper()
	m, err := lease.New(p.t.Context(), p.pool(), opts...)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = m.Close(ctx) // its server may be dead
	})
	return m
}

func (p *pair) sessions() *sessionlock.Manager {
	p.t.Helper()
	m, err := sessionlock.Open(p.t.Context(), p.dsn, sessionlock.Heartbeat(time.Second))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = m.Close(ctx)
	})
	return m
}

// write writes a register as the holder of a token, and reports whether it was accepted.
func (p *pair) write(db *sql.DB, register int, token fence.Token, writer string) bool {
	p.t.Helper()
	var n int64
	eventually(p.t, "a server that takes writes", func() bool {
		result, err := db.ExecContext(p.t.Context(), "UPDATE registers SET writer = $1 WHERE id = $2 AND "+token.Guard(3),
			append([]any{writer, register}, token.Args()...)...)
		if err != nil {
			return false // a connection to the server that died
		}
		n, err = result.RowsAffected()
		return err == nil
	})
	return n == 1
}

func (p *pair) writer(db *sql.DB, register int) (writer string) {
	p.t.Helper()
	eventually(p.t, "a server that answers", func() bool {
		return db.QueryRowContext(p.t.Context(), "SELECT writer FROM registers WHERE id = $1", register).Scan(&writer) == nil
	})
	return writer
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(bound); !holds(); <-tick.C {
		if time.Now().After(limit) {
			t.Fatalf("%s: waited too long", what)
		}
	}
}

func await[T any](t testing.TB, what string, c <-chan T) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(bound):
		t.Fatalf("%s: waited too long", what)
	}
}
