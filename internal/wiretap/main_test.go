package wiretap_test

import (
	"context"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var bg = context.Background()

// tapped is a proxy and a connection through it, into a schema of the test's own.
func tapped(t testing.TB, opts ...pgtest.Option) (*wiretap.Proxy, *pgx.Conn) {
	t.Helper()
	p, dsn := pgtest.Tap(t, pgtest.SchemaDSN(t))
	c := pgtest.Conn(t, append(opts, pgtest.Through(dsn))...)
	return p, c
}

func expect(t testing.TB, p *wiretap.Proxy, trips int, statements ...string) {
	t.Helper()
	if got := p.RoundTrips(); got != trips {
		t.Errorf("%d round trips, want %d", got, trips)
	}
	if got := p.Statements(); !slices.Equal(got, statements) {
		t.Errorf("statements %q, want %q", got, statements)
	}
	p.Reset()
}

func execute(t testing.TB, c *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := c.Exec(bg, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// wire is a connection through the proxy on which the test speaks the protocol
// itself.
type wire struct {
	t testing.TB
	*pgproto3.Frontend
}

func rawWire(t testing.TB) (*wiretap.Proxy, wire) {
	t.Helper()
	p, c := tapped(t)
	conn, err := c.PgConn().Hijack()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Conn.Close() })
	return p, wire{t, conn.Frontend}
}

// send sends messages in one transmission.
func (w wire) send(messages ...pgproto3.FrontendMessage) {
	w.t.Helper()
	for _, m := range messages {
		w.Send(m)
	}
	if err := w.Flush(); err != nil {
		w.t.Fatal(err)
	}
}

// await receives up to the n-th message of a type.
func await[M pgproto3.BackendMessage](w wire, n int) {
	w.t.Helper()
	for n > 0 {
		m, err := w.Receive()
		if err != nil {
			w.t.Fatal(err)
		}
		if _, ok := m.(M); ok {
			n--
		}
	}
}
