package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// postmaster is a running server process, a child of ours. No goroutine waits for
// it: it is asked for when somebody wants to know.
type postmaster struct {
	pid    int
	exited bool
	status syscall.WaitStatus
}

// spawn starts the server on its port without waiting for it to be ready.
func (s *Server) spawn() (*postmaster, error) {
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("pgserver: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(s.install.program("postgres"), "-D", s.data(), "-p", strconv.Itoa(s.port))
	cmd.Dir = s.dir
	cmd.Env = environment()
	cmd.SysProcAttr = s.account.attributes()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("pgserver: %w", err)
	}
	p := &postmaster{pid: cmd.Process.Pid}
	return p, cmd.Process.Release()
}

// alive reports whether the process still runs; once it says no the pid is not ours
// any more.
func (p *postmaster) alive() bool {
	if p.exited {
		return false
	}
	for {
		got, err := syscall.Wait4(p.pid, &p.status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		p.exited = got == p.pid || err != nil
		return !p.exited
	}
}

func (p *postmaster) signal(sig syscall.Signal) error {
	if !p.alive() {
		return nil
	}
	return syscall.Kill(p.pid, sig)
}

// gone waits for the end of the process and reports whether it came.
func (p *postmaster) gone() bool {
	return poll(context.Background(), endWithin, func() bool { return !p.alive() }) == nil
}

// ready waits until the server says in its pid file that it takes connections.
func (p *postmaster) ready(ctx context.Context, s *Server) error {
	err := poll(ctx, readyWithin, func() bool { return !p.alive() || s.pidFileSays(p.pid, "ready") })
	if err != nil {
		return err
	}
	if !p.alive() {
		return fmt.Errorf("the server ended with %s", describe(p.status))
	}
	return nil
}

func (s *Server) pidFileSays(pid int, status string) bool {
	text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return false
	}
	lines := strings.Split(string(text), "\n")
	return len(lines) > 7 && lines[0] == strconv.Itoa(pid) && strings.TrimSpace(lines[7]) == status
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return status.Signal().String()
	}
	return "exit code " + strconv.Itoa(status.ExitStatus())
}

var errTooLong = errors.New("took too long")

// poll asks until the answer is yes, ctx ends, or the time is over.
func poll(ctx context.Context, within time.Duration, done func() bool) error {
	limit := time.NewTimer(within)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return fmt.Errorf("%w (%s)", errTooLong, within)
		case <-tick.C:
		}
	}
	return nil
}
