package lease_test

import (
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/gormlock/gormlock/internal/pgserver"
)

// address leads to a server, and after a failover to its successor, as a floating IP
// address does.
type address struct {
	listener net.Listener

	mu     sync.Mutex
	target string
	conns  map[net.Conn]struct{}
}

func newAddress(t testing.TB, server *pgserver.Server) *address {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &address{listener: listener, conns: map[net.Conn]struct{}{}}
	a.lead(server)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { a.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		a.cut()
		wg.Wait()
	})
	return a
}

func (a *address) String() string { return a.listener.Addr().String() }

// lead makes the address lead to a server from now on, and cuts who was connected.
func (a *address) lead(server *pgserver.Server) {
	a.mu.Lock()
	a.target = net.JoinHostPort(server.Host(), strconv.Itoa(server.Port()))
	a.mu.Unlock()
	a.cut()
}

func (a *address) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.conns {
		_ = c.Close()
	}
}

func (a *address) serve(client net.Conn) {
	defer client.Close()
	a.mu.Lock()
	target := a.target
	a.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	a.mu.Lock()
	a.conns[client], a.conns[server] = struct{}{}, struct{}{}
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.conns, client)
		delete(a.conns, server)
		a.mu.Unlock()
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
	_ = client.Close()
	<-done
}
