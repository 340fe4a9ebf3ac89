package wire

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	// socketBuffer holds two writes, so that a write never waits for the server.
	socketBuffer = 256 << 10
	// goodbyeTime is how long Close may take to say that the session ends.
	goodbyeTime = 5 * time.Millisecond
)

// Conn is a connection taken out of pgx's hands. One goroutine may write while another one reads; Interrupt and Close may
// come from any.
type Conn struct {
	socket   net.Conn
	frontend *pgproto3.Frontend
	out      Messages
}

// NewConn is the connection that conn hijacked.
func NewConn(conn *pgconn.HijackedConn) (*Conn, error) {
	if tcp, ok := plain(conn.Conn).(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(socketBuffer) // with a smaller buffer a write may wait, which is all
	}
	if err := conn.Conn.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return &Conn{socket: conn.Conn, frontend: conn.Frontend}, nil
}

// Write sends what fill adds.
func (c *Conn) Write(fill func(*Messages)) error {
	m := &c.out
	m.buf, m.err = m.buf[:0], nil
	fill(m)
	if m.err != nil {
		return m.err
	}
	_, err := c.socket.Write(m.buf)
	return err
}

// Receive returns the next message, or nil after Interrupt. A message after which the server ends the session is an error.
func (c *Conn) Receive() (pgproto3.BackendMessage, error) {
	message, err := c.frontend.Receive()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, c.socket.SetReadDeadline(time.Time{})
	}
	if err == nil {
		err = fatal(message)
	}
	return message, err
}

// Interrupt ends a Receive that goes on, or the next one.
func (c *Conn) Interrupt() { _ = c.socket.SetReadDeadline(time.Unix(1, 0)) }

// Close closes the connection, after a word to the server if polite. It never waits.
func (c *Conn) Close(polite bool) {
	if polite {
		goodbye, _ := (&pgproto3.Terminate{}).Encode(nil)
		_ = c.socket.SetWriteDeadline(time.Now().Add(goodbyeTime))
		_, _ = c.socket.Write(goodbye)
	}
	_ = plain(c.socket).Close() // the socket below TLS: the Close of TLS would wait to send its goodbye
}

func plain(c net.Conn) net.Conn {
	if t, ok := c.(*tls.Conn); ok {
		return t.NetConn()
	}
	return c
}

// fatal is the error of a message after which the server ends the session.
func fatal(message pgproto3.BackendMessage) error {
	m, ok := message.(*pgproto3.ErrorResponse)
	if ok && (m.SeverityUnlocalized == "FATAL" || m.SeverityUnlocalized == "PANIC") {
		return pgconn.ErrorResponseToPgError(m)
	}
	return nil
}
