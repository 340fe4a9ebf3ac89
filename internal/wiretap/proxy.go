package wiretap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Proxy stands between clients and one server. Its methods may be called from
// several goroutines.
type Proxy struct {
	target   string
	listener net.Listener
	tasks    sync.WaitGroup
	dialing  context.Context // ends with Close
	stop     context.CancelFunc

	mu         sync.Mutex
	changed    *sync.Cond // some state below has changed
	links      map[*link]struct{}
	closed     bool
	refusing   bool
	stalled    [2]bool // by direction
	hook       func(sql string) Action
	roundTrips int
	opened     int
	executed   []string
	parsed     []string
}

// Listen starts a proxy to the server at target, which is host:port, on a free port
// of 127.0.0.1.
func Listen(target string) (*Proxy, error) {
	if _, _, err := net.SplitHostPort(target); err != nil {
		return nil, fmt.Errorf("wiretap: target %q: %w", target, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("wiretap: %w", err)
	}
	p := &Proxy{target: target, listener: l, links: map[*link]struct{}{}}
	p.dialing, p.stop = context.WithCancel(context.Background())
	p.changed = sync.NewCond(&p.mu)
	p.tasks.Go(p.accept)
	return p, nil
}

// Addr returns the address the proxy listens on, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// DSN returns a connection string for the server, a URL or a list of key=value, with
// the proxy's address in place of the server's, and without encryption.
func (p *Proxy) DSN(dsn string) (string, error) {
	host, port, err := net.SplitHostPort(p.Addr())
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://") {
		// The last value of a key counts.
		return fmt.Sprintf("%s host=%s port=%s sslmode=disable", dsn, host, port), nil
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", fmt.Errorf("wiretap: %w", err)
	}
	u.Host = p.Addr()
	query := u.Query()
	query.Del("host")
	query.Del("port")
	query.Set("sslmode", "disable")
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // libpq and pgx read a plus as itself
	return u.String(), nil
}

// Close ends all connections and returns when nothing of the proxy runs any more.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.stop()
	err := p.listener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	p.Cut()
	p.tasks.Wait()
	return err
}

// RoundTrips returns how many round trips began since Reset, over all connections.
func (p *Proxy) RoundTrips() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.roundTrips
}

// Statements returns the SQL the clients sent for execution since Reset, in order:
// the text of each Query, and for each Execute the text of the prepared statement.
func (p *Proxy) Statements() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.executed)
}

// Prepared returns the SQL the clients sent for preparation (Parse) since Reset, in
// order, executed or not.
func (p *Proxy) Prepared() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.parsed)
}

// Connections returns how many sessions are open on the server's side. A request to
// cancel comes on a connection of its own, which is no session.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	open := 0
	for l := range p.links {
		if l.session {
			open++
		}
	}
	return open
}

// Opened returns how many sessions began since Reset.
func (p *Proxy) Opened() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened
}

// Reset begins to count and to list anew. A round trip that is going on is not
// counted again.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roundTrips, p.opened, p.executed, p.parsed = 0, 0, nil, nil
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.tasks.Go(func() { p.serve(client.(*net.TCPConn)) })
	}
}

// serve connects a client with the server.
func (p *Proxy) serve(client *net.TCPConn) {
	p.mu.Lock()
	refuse := p.refusing || p.closed
	p.mu.Unlock()
	if refuse {
		reset(client)
		return
	}
	server, err := (&net.Dialer{}).DialContext(p.dialing, "tcp", p.target)
	if err != nil {
		reset(client)
		return
	}
	l := &link{proxy: p, ends: [2]*net.TCPConn{client, server.(*net.TCPConn)}}
	if !p.add(l) {
		l.end(reset)
		return
	}
	p.tasks.Go(l.answers)
	l.requests()
}

// add makes the link known to those who disturb it, unless it comes too late.
func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.refusing {
		return false
	}
	p.links[l] = struct{}{}
	return true
}
