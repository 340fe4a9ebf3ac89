package sessionlock_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// L15: if the address leads to another server, locks on the old one do not exclude clients of the new one.
func TestLoss_anotherServerAtTheAddress(t *testing.T) {
	t.Parallel()
	before, after := pgtest.Fresh(t), pgtest.Fresh(t)
	var failedOver atomic.Bool
	m := openAt(t, before.DSN("postgres"), sessionlock.BeforeConnect(func(_ context.Context, c *pgx.ConnConfig) error {
		if failedOver.Load() {
			c.Port = uint16(after.Port())
		}
		return nil
	}))
	rival := openAt(t, before.DSN("postgres"))
	held, contended := lockkey.Of("held"), lockkey.Of("contended")
	l := acquire(t, m, held)
	blocker := acquire(t, rival, contended)
	failedOver.Store(true)
	got := acquire(t, m, contended) // waits on a new connection, which meets the other server
	assertLost(t, m, l)
	if err := l.Err(); !strings.Contains(err.Error(), "another server") {
		t.Error(err)
	}
	if !pgtest.Observe(t, after.DSN("postgres")).Held(t, contended) {
		t.Error("the lock is not on the new server")
	}
	release(t, got)
	release(t, blocker)
}

// P15: a wait holds a snapshot for no longer than a slice.
func TestWaiting_letsCreateIndexConcurrentlyThrough(t *testing.T) {
	t.Parallel()
	l, got := contended(t, open(t), open(t))
	db := pgtest.SQLDB(t, pgtest.Schema())
	for _, sql := range []string{"CREATE TABLE big (id int)", "CREATE INDEX CONCURRENTLY ON big (id)"} {
		if _, err := db.ExecContext(t.Context(), sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	release(t, l)
	release(t, <-got)
}

// P18: an engine that grants every lock to everybody, whatever version it reports.
func TestOpen_refusesLocksThatExcludeNobody(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for pid := uint32(1); ; pid++ {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go sayYes(c, pid)
		}
	}()
	_, err = sessionlock.Open(t.Context(), "postgres://postgres@"+listener.Addr().String()+"/postgres?sslmode=disable")
	if !errors.Is(err, sessionlock.ErrNoExclusion) || !strings.Contains(err.Error(), "pg_try_advisory_lock answered t") {
		t.Errorf("got %v", err)
	}
}

// sayYes is a server whose lock functions are stubs.
func sayYes(c net.Conn, pid uint32) {
	defer c.Close()
	b := pgproto3.NewBackend(c, c)
	if _, err := b.ReceiveStartupMessage(); err != nil {
		return
	}
	b.Send(&pgproto3.AuthenticationOk{})
	b.Send(&pgproto3.BackendKeyData{ProcessID: pid, SecretKey: []byte{1, 2, 3, 4}})
	for {
		b.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if b.Flush() != nil {
			return
		}
		message, err := b.Receive()
		if err != nil {
			return
		}
		query, ok := message.(*pgproto3.Query)
		if !ok {
			return
		}
		if strings.Contains(query.String, "pg_is_in_recovery") {
			result(b, "PostgreSQL 17.0 on x86_64-pc-linux-gnu, compiled by gcc 12.2.0, 64-bit")
			result(b, strconv.Itoa(int(pid)), "f", "today", "5")
			result(b)
			continue
		}
		result(b, "t")
	}
}

func result(b *pgproto3.Backend, values ...string) {
	description, row := &pgproto3.RowDescription{}, &pgproto3.DataRow{}
	for _, v := range values {
		description.Fields = append(description.Fields, pgproto3.FieldDescription{Name: []byte("v"), DataTypeOID: 25})
		row.Values = append(row.Values, []byte(v))
	}
	b.Send(description)
	if len(values) > 0 {
		b.Send(row)
	}
	b.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
}
