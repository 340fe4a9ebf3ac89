package wiretap

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
)

// direction is where bytes go; as an index into ends it is where they come from.
type direction int

const (
	toServer direction = iota
	toClient
)

// link is one client's connection and the one to the server that carries it on.
type link struct {
	proxy *Proxy
	ends  [2]*net.TCPConn // client, server

	// Guarded by proxy.mu.
	session bool // not a request to cancel
	ended   bool
	held    [2]bool
	cutting bool // answers are withheld, and the connection is cut when they are complete
	orphan  bool // the client's side is closed, the server's is kept open

	// mu makes one step of taking bytes off the client's socket and counting them.
	mu       sync.Mutex
	exchange exchange
	taken    int64 // bytes taken off the client's socket
	parsed   int64 // bytes of those that belong to messages already looked at
	started  bool  // the server said it is ready for the first time

	statements statements // used by requests alone
}

// requests carries what the client sends to the server, until either of them ends.
func (l *link) requests() {
	w := bufio.NewWriterSize(gate{l, toServer}, bufferSize)
	r := bufio.NewReaderSize(flushing{w, clientSocket{l}}, bufferSize)
	session, err := l.startup(r, w)
	for err == nil {
		err = l.request(r, w, session)
	}
	_ = w.Flush()
	switch {
	case l.isOrphan():
	case errors.Is(err, errCut):
		l.end(closeConn)
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, errProtocol):
		l.end(reset)
	default:
		// The client has ended, and the server may still have to answer; or the
		// server has, and what it said last still goes to the client.
		_ = l.ends[toClient].CloseWrite()
	}
}

// answers carries what the server sends to the client, until either of them ends.
func (l *link) answers() {
	w := bufio.NewWriterSize(gate{l, toClient}, bufferSize)
	r := bufio.NewReaderSize(flushing{w, l.ends[toClient]}, bufferSize)
	var err error
	for err == nil {
		err = l.answer(r, w)
	}
	_ = w.Flush()
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, errProtocol) {
		l.end(reset)
	} else {
		l.end(closeConn)
	}
}

const bufferSize = 64 << 10

// flushing sends on what was read so far before it waits for more.
type flushing struct {
	w *bufio.Writer
	r io.Reader
}

func (f flushing) Read(b []byte) (int, error) {
	if err := f.w.Flush(); err != nil {
		return 0, err
	}
	return f.r.Read(b)
}

// clientSocket reads from the client and counts in one step, so that answers sees
// each byte either in the socket or in the count.
type clientSocket struct{ l *link }

func (s clientSocket) Read(b []byte) (n int, err error) {
	raw, err := s.l.ends[toServer].SyscallConn()
	if err != nil {
		return 0, err
	}
	var readErr error
	err = raw.Read(func(fd uintptr) bool {
		s.l.mu.Lock()
		defer s.l.mu.Unlock()
		for {
			n, readErr = syscall.Read(int(fd), b)
			if readErr != syscall.EINTR {
				break
			}
		}
		if readErr == syscall.EAGAIN {
			return false
		}
		n = max(n, 0)
		s.l.taken += int64(n)
		return true
	})
	switch {
	case err != nil:
		return 0, err
	case readErr != nil:
		return n, readErr
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// sentSoFar is the offset of the end of what the client has sent, as far as it is
// here. l.mu is held.
func (l *link) sentSoFar() int64 {
	raw, err := l.ends[toServer].SyscallConn()
	if err != nil {
		return l.taken
	}
	inSocket := 0
	_ = raw.Control(func(fd uintptr) {
		var b [4096]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		if err == nil {
			inSocket = n
		}
	})
	return l.taken + int64(inSocket)
}

var errProtocol = errors.New("wiretap: not the PostgreSQL protocol")

// message reads one message: its type, and all of its bytes.
func message(r *bufio.Reader) (kind byte, raw []byte, err error) {
	head, err := r.Peek(5)
	if err != nil {
		return 0, nil, err
	}
	size := int64(binary.BigEndian.Uint32(head[1:]))
	if size < 4 || size > 1<<30+1024 {
		return 0, nil, fmt.Errorf("%w: message %q of %d bytes", errProtocol, head[0], size)
	}
	raw = make([]byte, size+1)
	_, err = io.ReadFull(r, raw)
	return raw[0], raw, err
}

// request looks at one message of the client and passes it on.
func (l *link) request(r *bufio.Reader, w *bufio.Writer, session bool) error {
	kind, raw, err := message(r)
	if err != nil {
		return err
	}
	if !session {
		_, err = w.Write(raw)
		return err
	}
	executed, executes, parsed, parses := l.statements.read(kind, raw[5:])
	l.mu.Lock()
	begins := l.started && l.exchange.sent(kind, l.parsed)
	l.parsed += int64(len(raw))
	l.mu.Unlock()
	hook := l.proxy.note(begins, executed, executes, parsed, parses)
	if executes && hook != nil {
		if err := l.act(hook(executed), w); err != nil {
			return err
		}
	}
	_, err = w.Write(raw)
	return err
}

// answer looks at one message of the server and passes it on.
func (l *link) answer(r *bufio.Reader, w *bufio.Writer) error {
	kind, raw, err := message(r)
	if err != nil {
		return err
	}
	if err := l.pass(toClient); err != nil {
		return err
	}
	l.mu.Lock()
	ends := false
	if l.started {
		ends = l.exchange.answered(kind)
	} else {
		l.started = kind == ansReadyForQuery
	}
	if ends {
		// What the client has sent before it can see this answer, it did not wait for.
		l.exchange.ahead = l.sentSoFar()
	}
	l.mu.Unlock()
	if l.isCutting() {
		if ends {
			return errCut
		}
		return nil
	}
	_, err = w.Write(raw)
	return err
}

// note counts a message.
func (p *Proxy) note(begins bool, executed string, executes bool, parsed string, parses bool) (hook func(string) Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if begins {
		p.roundTrips++
	}
	if executes {
		p.executed = append(p.executed, executed)
	}
	if parses {
		p.parsed = append(p.parsed, parsed)
	}
	return p.hook
}
