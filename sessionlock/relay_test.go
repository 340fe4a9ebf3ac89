package sessionlock_test

import (
	"errors"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// relay stands between a manager and the server, like wiretap. It can lose what the kernel itself sends: acknowledgements, and answers to keepalive
// probes. The kernel sends these as long as a connection is open, even if its process is stopped or stalls.
type relay struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup

	mu    sync.Mutex
	links map[*link]struct{}
}

type link struct {
	client, server *net.TCPConn
	silent         bool // guarded by relay.mu
}

func newRelay(t testing.TB, dsn string) (*relay, *pgx.ConnConfig) {
	t.Helper()
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target := net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	r := &relay{listener: listener, target: target, links: map[*link]struct{}{}}
	r.wg.Go(r.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		r.mu.Lock()
		for l := range r.links {
			_ = errors.Join(l.client.Close(), l.server.Close())
		}
		r.mu.Unlock()
		r.wg.Wait()
	})
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	n, _ := strconv.Atoi(port)
	c.Host, c.Port, c.Fallbacks = "127.0.0.1", uint16(n), nil
	return r, c
}

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{client: client.(*net.TCPConn), server: server.(*net.TCPConn)}
		r.mu.Lock()
		r.links[l] = struct{}{}
		r.mu.Unlock()
		r.wg.Go(func() { r.copy(l, l.server, l.client) })
		r.wg.Go(func() { r.copy(l, l.client, l.server) })
	}
}

// copy ends both sides when one ends. On a silent link neither side notices that.
func (r *relay) copy(l *link, to, from *net.TCPConn) {
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		r.mu.Lock()
		if !l.silent && err == nil {
			_, err = to.Write(buf[:n])
		}
		if !l.silent && err != nil {
			_ = errors.Join(to.Close(), from.Close())
			delete(r.links, l)
		}
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// silence makes the connections that are open now lose everything, in both directions, without an error. New connections work.
//
// If the kernel does not let us lose packets, the server sees the connection end after limit. Then the server's own limit is not measured:
// TestSession_settings checks that it is not shorter.
func (r *relay) silence(t testing.TB, limit time.Duration) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		if err := losePackets(l.server); err != nil {
			t.Logf("NOT MEASURED: when the server frees the lock. Packets cannot be lost here (%v): the relay ends the server's side after %s", err, limit)
			time.AfterFunc(limit, func() { _ = l.server.Close() })
		}
		l.silent = true
	}
}
