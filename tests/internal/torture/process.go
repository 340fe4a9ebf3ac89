package torture

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/gormlock/gormlock/internal/wiretap"
)

// Process is a running worker.
type Process struct {
	Proxy *wiretap.Proxy // between its manager and the server

	dsn   string // through the proxy
	env   []string
	cmd   *exec.Cmd
	stdin io.Closer
	held  chan struct{} // gets a value when it takes a lock, if there is room
	read  chan struct{} // closed when its output has ended
}

// Stop stops the process until it is told to continue.
func (p *Process) Stop() { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }

// Continue lets a stopped process go on.
func (p *Process) Continue() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

// run starts the process of p.
func (s *Scene) run(p *Process) {
	s.T.Helper()
	p.held, p.read = make(chan struct{}, 1), make(chan struct{})
	p.cmd = exec.CommandContext(context.Background(), os.Args[0]) // the test ends it
	p.cmd.Env = append(os.Environ(), WorkerDSN+"="+p.dsn, workerDirect+"="+s.DSN, "GOMAXPROCS=1")
	p.cmd.Env = append(p.cmd.Env, p.env...)
	if s.naked {
		p.cmd.Env = append(p.cmd.Env, workerNaked+"=1")
	}
	p.cmd.Stderr = os.Stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		s.T.Fatal(err)
	}
	p.stdin = stdin
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		s.T.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		s.T.Fatal(err)
	}
	go s.listen(p, out)
}

// listen keeps the output of p until p ends.
func (s *Scene) listen(p *Process, out io.Reader) {
	defer close(p.read)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var e Event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // cut off by a kill
		}
		s.mu.Lock()
		s.events = append(s.events, e)
		s.mu.Unlock()
		if e.What == "held" {
			select {
			case p.held <- struct{}{}:
			default:
			}
		}
	}
}
