package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// Pause stops the server's process and all its backends where they are (SIGSTOP) and
// returns when nothing of it runs. Connections stay open and nothing answers, as with
// a machine that hangs. On a server that is down it is an error.
func (s *Server) Pause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		return ErrStopped
	case s.process == nil || !s.process.alive():
		return errors.New("pgserver: pause: the server is down")
	}
	s.paused = true
	var err error
	// The server itself is the first to stop, so that no backend is added.
	waitErr := poll(context.Background(), endWithin, func() (still bool) {
		still, err = stopAll(s.process.pid)
		return still || err != nil
	})
	if err := errors.Join(err, waitErr); err != nil {
		return fmt.Errorf("pgserver: pause: %w", err)
	}
	return nil
}

// stopAll asks everything that runs to stop and reports whether nothing did.
func stopAll(pid int) (still bool, err error) {
	family, err := familyOf(pid)
	if err != nil {
		return false, err
	}
	still = len(family) > 0
	for _, p := range family {
		if p.state != 'T' && p.state != 'Z' {
			still = false
			_ = syscall.Kill(p.pid, syscall.SIGSTOP)
		}
	}
	return still, nil
}

// Resume lets everything go on that Pause has stopped. On a server that is not
// paused it does nothing.
func (s *Server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return ErrStopped
	}
	return s.resume(syscall.SIGCONT)
}

// resume lets everything go on; what is to crash gets that signal first.
func (s *Server) resume(then syscall.Signal) error {
	if !s.paused {
		return nil
	}
	family, err := familyOf(s.process.pid)
	if err != nil {
		return fmt.Errorf("pgserver: resume: %w", err)
	}
	s.paused = false
	for _, p := range family {
		if then == syscall.SIGQUIT {
			_ = syscall.Kill(p.pid, then)
		}
		_ = syscall.Kill(p.pid, syscall.SIGCONT)
	}
	return nil
}

type process struct {
	pid   int
	state byte // as ps shows it: T is stopped, Z has ended
}

// familyOf is the process pid, first, and its children.
func familyOf(pid int) ([]process, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return familyByPS(pid)
	}
	var family []process
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// "12 (name (with) spaces) S 1 …": state and parent follow the name.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) > 1 {
			family = join(family, pid, []byte(filepath.Base(filepath.Dir(file))), fields[1], fields[0])
		}
	}
	return family, nil
}

func familyByPS(pid int) ([]process, error) {
	out, err := exec.Command("ps", "-axo", "pid=,ppid=,state=").Output()
	if err != nil {
		return nil, fmt.Errorf("ps: %w", err)
	}
	var family []process
	for line := range bytes.Lines(out) {
		if fields := bytes.Fields(line); len(fields) == 3 {
			family = join(family, pid, fields[0], fields[1], fields[2])
		}
	}
	return family, nil
}

// join adds a process to the family of pid if it is of it.
func join(family []process, pid int, id, parent, state []byte) []process {
	wanted := strconv.Itoa(pid)
	switch {
	case string(id) == wanted:
		return append([]process{{pid, state[0]}}, family...)
	case string(parent) == wanted:
		child, err := strconv.Atoi(string(id))
		if err == nil {
			return append(family, process{child, state[0]})
		}
	}
	return family
}
