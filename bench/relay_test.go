package bench

import (
	"context"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
)

// distant is the way to a server behind a network: each direction takes half of the round trip.
func distant(b *testing.B, dsn string, roundTrip time.Duration) pgtest.Option {
	b.Helper()
	server, err := pgx.ParseConfig(dsn)
	must(b, err)
	target := net.JoinHostPort(server.Host, strconv.Itoa(int(server.Port)))
	listener, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	must(b, err)
	b.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := new(net.Dialer).DialContext(context.Background(), "tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			go late(to, client, roundTrip/2)
			go late(client, to, roundTrip/2)
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	must(b, err)
	return pgtest.Param("port", port)
}

// late copies what it reads, with this delay for each piece.
func late(to, from net.Conn, by time.Duration) {
	type piece struct {
		due  time.Time
		data []byte
	}
	pieces := make(chan piece, 1024)
	go func() {
		defer func() { _ = to.Close() }()
		for p := range pieces {
			if wait := time.Until(p.due); wait > 0 { // time.Sleep would wait a whole millisecond while the program is idle
				pause := syscall.NsecToTimespec(int64(wait))
				_ = syscall.Nanosleep(&pause, nil)
			}
			if _, err := to.Write(p.data); err != nil {
				_ = from.Close()
			}
		}
	}()
	defer close(pieces)
	for {
		data := make([]byte, 16<<10)
		n, err := from.Read(data)
		if n > 0 {
			pieces <- piece{time.Now().Add(by), data[:n]}
		}
		if err != nil {
			return
		}
	}
}
