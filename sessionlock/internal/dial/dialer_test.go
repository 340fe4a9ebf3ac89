package dial

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/tokens"
	"github.com/gormlock/gormlock/internal/waits"
	"github.com/gormlock/gormlock/sessionlock/internal/wire"
)

var errRefused = errors.New("refused")

func dialer(t *testing.T, dsn string) *Dialer {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return &Dialer{Config: config, Owner: "me", Heartbeat: 3 * time.Second, Refusals: Refusals{errRefused, errRefused, errRefused}}
}

type placed holder.Place

func (p placed) Place() holder.Place { return holder.Place(p) }

// answer sends one query and reads until the server is ready again.
func answer(t *testing.T, c *wire.Conn, fill func(*wire.Messages)) (rows [][][]byte) {
	t.Helper()
	if err := c.Write(func(m *wire.Messages) { fill(m); m.AddSync() }); err != nil {
		t.Fatal(err)
	}
	for {
		message, err := c.Receive()
		if err != nil {
			t.Fatal(err)
		}
		switch m := message.(type) {
		case *pgproto3.ErrorResponse:
			t.Errorf("the server answers %s: %s", m.Code, m.Message)
		case *pgproto3.DataRow:
			var row [][]byte
			for _, v := range m.Values {
				row = append(row, append([]byte(nil), v...))
			}
			rows = append(rows, row)
		case *pgproto3.ReadyForQuery:
			return rows
		}
	}
}

// A link speaks all statements of its role, in each space and mode, and the server does what they are for.
func TestLink_knowsTheStatementsOfItsRole(t *testing.T) {
	t.Parallel()
	d := dialer(t, pgtest.DSN(t))
	bigint, _ := pgtest.Key(t).Int64()
	hi, lo, _ := pgtest.PairKey(t).Pair()
	places := []holder.Place{{Space: 1, ID: bigint}, {Space: 2, ID: int64(hi)<<32 | int64(uint32(lo))}}
	for _, r := range []wire.Role{wire.Home, wire.Waiter} {
		l, err := d.First(t.Context())
		if r != wire.Home {
			l.Conn.Close(true)
			l, err = d.Dial(t.Context(), r)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range places {
			for _, mode := range []wire.Mode{wire.Exclusive, wire.Shared} {
				list := func(s wire.Statement) func(*wire.Messages) {
					return func(m *wire.Messages) { wire.AddListed(m, s.For(at, mode), []placed{placed(at)}) }
				}
				take := list(wire.Try)
				if r == wire.Waiter {
					take = func(m *wire.Messages) { m.AddWait(wire.Unlock.For(at, mode), at, time.Second, waits.Before{}) }
				}
				taken := answer(t, l.Conn, take)
				rivals := answer(t, l.Conn, func(m *wire.Messages) {
					wire.AddListed(m, wire.Rivals.For(at, wire.Exclusive), []placed{placed(at)})
				})
				if r == wire.Home && len(taken) != 0 || len(rivals) != 0 {
					t.Errorf("role %d, %v, %s: refused %d, and %d wait", r, at, mode, len(taken), len(rivals))
				}
				if back := answer(t, l.Conn, list(wire.Unlock)); len(back) != 0 {
					t.Errorf("role %d, %v, %s: it was not held", r, at, mode)
				}
				if back := answer(t, l.Conn, list(wire.Unlock)); len(back) != 1 {
					t.Errorf("role %d, %v, %s: it is held still", r, at, mode)
				}
			}
		}
		answer(t, l.Conn, take(places[0]))
		answer(t, l.Conn, (*wire.Messages).AddUnlockAll)
		l.Conn.Close(true)
	}
}

func take(at holder.Place) func(*wire.Messages) {
	return func(m *wire.Messages) { wire.AddListed(m, wire.Try.For(at, wire.Exclusive), []placed{placed(at)}) }
}

func TestLink_issuesTokens(t *testing.T) {
	t.Parallel()
	d := dialer(t, pgtest.SchemaDSN(t))
	if err := fence.Migrate(t.Context(), pgtest.SQLDB(t, pgtest.Schema())); err != nil {
		t.Fatal(err)
	}
	l, err := d.Dial(t.Context(), wire.Issuer)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Conn.Close(true)
	at, err := holder.PlaceOf(pgtest.Key(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range []wire.Statement{wire.Issue, wire.IssueUnlocked} {
		rows := answer(t, l.Conn, func(m *wire.Messages) {
			m.AddIssue(s, tokens.BatchArgs([]tokens.Key{{Space: at.Space, ID: at.ID, Name: "report"}}))
		})
		if len(rows) != 1 {
			t.Fatalf("%d rows, want one", len(rows))
		}
		if got, n, err := wire.TokenRow(rows[0]); err != nil || got != at || n != 1<<40+1+int64(i) {
			t.Errorf("got %v, %d, %v", got, n, err)
		}
	}
}

// What cannot be prepared is closed, not left with the server.
func TestDial_failsWithoutTheTable(t *testing.T) {
	t.Parallel()
	d := dialer(t, pgtest.SchemaDSN(t))
	d.Owner = t.Name()
	if l, err := d.Dial(t.Context(), wire.Issuer); err == nil {
		l.Conn.Close(true)
		t.Fatal("statements on a table that is not there are prepared")
	}
	conn := pgtest.Conn(t)
	for deadline := time.Now().Add(30 * time.Second); ; {
		var n int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", "gormlock "+d.Owner).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are open", n)
		}
	}
}

func TestDial_beforeConnect(t *testing.T) {
	t.Parallel()
	d := dialer(t, pgtest.DSN(t))
	d.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return errRefused }
	if _, err := d.Dial(t.Context(), wire.Home); !errors.Is(err, errRefused) {
		t.Errorf("got %v", err)
	}
	if d.Config.Port == 0 {
		t.Error("the configuration was changed, not a copy")
	}
}

func TestServer_numbers(t *testing.T) {
	t.Parallel()
	s := &Server{settings: map[string]string{
		"max_locks_per_transaction": "64", "max_connections": "100", "max_prepared_transactions": "2", "deadlock_timeout": "1500",
	}}
	if s.LockTable() != 64*102 || s.DeadlockTimeout() != 1500*time.Millisecond {
		t.Errorf("%d locks, deadlocks after %s", s.LockTable(), s.DeadlockTimeout())
	}
}
