package wiretap

import (
	"bufio"
	"context"
	"errors"
	"net"
)

// Action is what happens to a statement.
type Action int

const (
	// Pass lets the statement and its answer through.
	Pass Action = iota
	// HoldRequest keeps the statement from the server until Resume.
	HoldRequest
	// HoldAnswer lets the server do the work and keeps its answer from the client
	// until Resume.
	HoldAnswer
	// CutRequest cuts the connection before the server sees the statement.
	CutRequest
	// CutAnswer lets the server do the work and cuts the connection in place of its
	// answer, when that is complete: the client cannot know that the work was done.
	CutAnswer
)

// OnQuery calls decide with each statement that a client sends for execution, before
// the server sees it. It is called from the goroutines of the connections, several
// at a time. Nil takes it away.
func (p *Proxy) OnQuery(decide func(sql string) Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook = decide
}

// Cut closes all connections, towards both sides.
func (p *Proxy) Cut() {
	p.each(func(l *link) { l.end(closeConn) })
}

// CutClients closes all connections towards the clients only: the server does not
// notice, and keeps the sessions and their locks until Cut or Close.
func (p *Proxy) CutClients() {
	p.each(func(l *link) {
		p.set(func() { l.orphan = true })
		closeConn(l.ends[toServer])
	})
}

// ResetConnections ends all connections, towards both sides, with a reset (RST) in
// place of an orderly end.
func (p *Proxy) ResetConnections() {
	p.each(func(l *link) { l.end(reset) })
}

// Stall keeps everything that is sent from now on, in both directions and on new
// connections too, until Resume.
func (p *Proxy) Stall() {
	p.set(func() { p.stalled = [2]bool{true, true} })
}

// StallRequests keeps what clients send from the server until Resume.
func (p *Proxy) StallRequests() {
	p.set(func() { p.stalled[toServer] = true })
}

// StallAnswers keeps what the server sends from the clients until Resume. The server
// does the work it is asked for.
func (p *Proxy) StallAnswers() {
	p.set(func() { p.stalled[toClient] = true })
}

// Resume sends on everything that is kept, and keeps nothing more.
func (p *Proxy) Resume() {
	p.set(func() {
		p.stalled = [2]bool{}
		for l := range p.links {
			l.held = [2]bool{}
		}
	})
}

// AwaitHeld returns nil when HoldRequest or HoldAnswer keeps something back, else the error of ctx. What decides about a
// statement is called before anything is done to it: a Resume in between would come too early.
func (p *Proxy) AwaitHeld(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { p.set(func() {}) })
	defer stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for ctx.Err() == nil {
		for l := range p.links {
			if l.held != [2]bool{} {
				return nil
			}
		}
		p.changed.Wait()
	}
	return ctx.Err()
}

// Refuse resets every new connection, until Admit. Open connections live on.
func (p *Proxy) Refuse() {
	p.set(func() { p.refusing = true })
}

// Admit takes new connections again.
func (p *Proxy) Admit() {
	p.set(func() { p.refusing = false })
}

func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

func (p *Proxy) each(do func(*link)) {
	p.mu.Lock()
	var links []*link
	for l := range p.links {
		links = append(links, l)
	}
	p.mu.Unlock()
	for _, l := range links {
		do(l)
	}
}

var errCut = errors.New("wiretap: the connection is cut")

// act does to a statement what was decided, before it is passed on.
func (l *link) act(a Action, w *bufio.Writer) error {
	switch a {
	case Pass:
	case HoldRequest:
		// What came before goes its way.
		if err := w.Flush(); err != nil {
			return err
		}
		l.hold(toServer)
	case HoldAnswer:
		l.hold(toClient)
	case CutRequest:
		return errCut
	case CutAnswer:
		l.proxy.set(func() { l.cutting = true })
	}
	return nil
}

func (l *link) isCutting() bool {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	return l.cutting
}

func (l *link) isOrphan() bool {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	return l.orphan
}

func (l *link) hold(d direction) {
	l.proxy.set(func() { l.held[d] = true })
}

// pass waits until bytes may go in direction d.
func (l *link) pass(d direction) error {
	p := l.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	for !l.ended && (p.stalled[d] || l.held[d]) {
		p.changed.Wait()
	}
	if l.ended {
		return errCut
	}
	return nil
}

// gate writes to the far end of a direction when bytes may go there.
type gate struct {
	l *link
	d direction
}

func (g gate) Write(b []byte) (int, error) {
	if err := g.l.pass(g.d); err != nil {
		return 0, err
	}
	if g.d == toClient && g.l.isOrphan() {
		return len(b), nil
	}
	return g.l.ends[1-g.d].Write(b)
}

// end closes both sides; nothing that is kept is sent on.
func (l *link) end(how func(*net.TCPConn)) {
	l.proxy.set(func() {
		l.ended = true
		delete(l.proxy.links, l)
	})
	how(l.ends[0])
	how(l.ends[1])
}

func closeConn(c *net.TCPConn) { _ = c.Close() }

func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
