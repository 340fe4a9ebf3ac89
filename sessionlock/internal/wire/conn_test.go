package wire

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// pair is a connection and the server's end of it.
func pair(t *testing.T) (*Conn, net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	return conn(t, near, far), far
}

// conn is a connection through near to who has far, until the end of the test.
func conn(t *testing.T, near, far net.Conn) *Conn {
	t.Helper()
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	c, err := NewConn(&pgconn.HijackedConn{Conn: near, Frontend: pgproto3.NewFrontend(near, near)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// dialled are the two ends of a connection that takes what is written although nobody reads yet.
func dialled(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return near, far
}

func send(t *testing.T, to net.Conn, message pgproto3.BackendMessage) {
	t.Helper()
	buf, err := message.Encode(nil)
	if err == nil {
		_, err = to.Write(buf)
	}
	if err != nil {
		t.Error(err)
	}
}

// An interrupt ends one Receive, also between two of them or in the middle of a message; nothing is lost.
func TestConn_interrupted(t *testing.T) {
	t.Parallel()
	c, server := pair(t)
	c.Interrupt()
	if m, err := c.Receive(); m != nil || err != nil {
		t.Fatalf("interrupted before it began: %v, %v", m, err)
	}
	half := make(chan struct{})
	go func() {
		_, _ = server.Write([]byte{'Z', 0, 0})
		close(half)
	}()
	over := make(chan error, 1)
	go func() {
		m, err := c.Receive()
		if m != nil {
			err = errors.New("a message out of half of one")
		}
		over <- err
	}()
	<-half
	c.Interrupt()
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = server.Write([]byte{0, 5, 'I'}) }()
	if m, err := c.Receive(); err != nil {
		t.Fatal(err)
	} else if _, ok := m.(*pgproto3.ReadyForQuery); !ok {
		t.Fatalf("got %T", m)
	}
}

func TestConn_fatalEndsIt(t *testing.T) {
	t.Parallel()
	c, server := pair(t)
	go send(t, server, &pgproto3.ErrorResponse{Severity: "ERREUR", SeverityUnlocalized: "ERROR", Code: "55P03"})
	if m, err := c.Receive(); err != nil || m == nil {
		t.Errorf("an error of one statement: %v, %v", m, err)
	}
	go send(t, server, &pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "57P01"})
	var pgErr *pgconn.PgError
	if _, err := c.Receive(); !errors.As(err, &pgErr) || pgErr.Code != "57P01" {
		t.Errorf("got %v", err)
	}
}

func TestConn_closes(t *testing.T) {
	t.Parallel()
	for polite, want := range map[bool]string{true: "X\x00\x00\x00\x04", false: ""} {
		near, far := dialled(t)
		conn(t, near, far).Close(polite)
		if got, err := io.ReadAll(far); err != nil || string(got) != want {
			t.Errorf("polite %v: it says %q, %v", polite, got, err)
		}
	}
	c, _ := pair(t) // nobody reads
	c.Close(true)
}

// What cannot be encoded is an error of the write, not half a message.
func TestConn_writesAllOrNothing(t *testing.T) {
	t.Parallel()
	c, _ := pair(t) // a write would wait: nobody reads
	if err := c.Write(func(m *Messages) {
		m.AddSync()
		m.addText("", make([]string, 1<<16)...)
	}); err == nil {
		t.Error("65,536 parameters were written")
	}
}
