package pgserver

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// Pause stops the server's process and all its backends where they are (SIGSTOP).
// Connections stay open and nothing answers, as in a machine that hangs. On a server
// that is down it is an error.
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
	if err := s.process.signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("pgserver: pause: %w", err)
	}
	// Signals arrive late: the server may still start a backend or two.
	var seen []int
	for rounds := 0; rounds < 2; rounds++ {
		pids, err := children(s.process.pid)
		if err != nil {
			return fmt.Errorf("pgserver: pause: %w", err)
		}
		for _, pid := range pids {
			if !slices.Contains(seen, pid) {
				rounds = 0
				seen = append(seen, pid)
				_ = syscall.Kill(pid, syscall.SIGSTOP)
			}
		}
	}
	return nil
}

// Resume lets everything go on that Pause has stopped. On a server that is not
// paused it does nothing.
func (s *Server) Resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return ErrStopped
	}
	return s.resume()
}

func (s *Server) resume() error {
	if !s.paused {
		return nil
	}
	s.paused = false
	pids, err := children(s.process.pid)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	if err := errors.Join(err, s.process.signal(syscall.SIGCONT)); err != nil {
		return fmt.Errorf("pgserver: resume: %w", err)
	}
	return nil
}

// children are the processes whose parent is pid.
func children(pid int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return childrenByPS(pid)
	}
	var found []int
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// "12 (name (with) parentheses) S 1 ...": the parent is the second field
		// after the name.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) < 2 || string(fields[1]) != strconv.Itoa(pid) {
			continue
		}
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			found = append(found, child)
		}
	}
	return found, nil
}

func childrenByPS(pid int) ([]int, error) {
	out, err := exec.Command("ps", "-axo", "pid=,ppid=").Output()
	if err != nil {
		return nil, err
	}
	var found []int
	for line := range bytes.Lines(out) {
		fields := bytes.Fields(line)
		if len(fields) != 2 || string(fields[1]) != strconv.Itoa(pid) {
			continue
		}
		if child, err := strconv.Atoi(string(fields[0])); err == nil {
			found = append(found, child)
		}
	}
	return found, nil
}
