package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Stop ends the server at once and removes its directory. It may be called in every
// state and more than once; on failure it says what is left.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	err := s.end(syscall.SIGQUIT)
	s.watchdog.release()
	// Gone by now, unless somebody has killed the watchdog.
	return errors.Join(err, os.RemoveAll(s.dir))
}

// Shutdown ends the server in good order (mode fast: transactions are rolled back,
// connections are closed) and keeps its data for Restart. On a server that is down
// it does nothing.
func (s *Server) Shutdown() error {
	return s.down(syscall.SIGINT)
}

// Crash ends the server without any order (mode immediate) and keeps its data, from
// which Restart recovers. No commit that was answered is lost, unless a Setting
// turned synchronous_commit off. On a server that is down it does nothing.
func (s *Server) Crash() error {
	return s.down(syscall.SIGQUIT)
}

func (s *Server) down(how syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return ErrStopped
	}
	return s.end(how)
}

// end sends the signal and waits; a server that does not heed it is killed, and the
// error says so.
func (s *Server) end(how syscall.Signal) error {
	if s.process == nil {
		return nil
	}
	p := s.process
	if err := p.signal(how); err != nil {
		return fmt.Errorf("pgserver: signal %s to %d: %w", how, p.pid, err)
	}
	// What is paused gets the signal before it does anything else.
	if err := s.resume(how); err != nil {
		return err
	}
	s.process = nil
	if p.gone() {
		return nil
	}
	_ = p.signal(syscall.SIGKILL)
	p.gone()
	return fmt.Errorf("pgserver: %d did not end within %s of %s and was killed", p.pid, endWithin, how)
}

// Restart starts the server again, on the same port and the same data, after it was
// ended by Shutdown, by Crash or by itself; a running one it shuts down first. On
// failure the server is down and Restart may be called again.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return ErrStopped
	}
	if err := s.end(syscall.SIGINT); err != nil {
		return err
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := s.launch(ctx)
		if !errors.Is(err, errTaken) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}
