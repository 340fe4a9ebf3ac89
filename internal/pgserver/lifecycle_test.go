package pgserver_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgserver"
)

func TestStopInEveryState(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*pgserver.Server) error{
		"running":  func(*pgserver.Server) error { return nil },
		"shut":     (*pgserver.Server).Shutdown,
		"crashed":  (*pgserver.Server).Crash,
		"paused":   (*pgserver.Server).Pause,
		"stopped":  (*pgserver.Server).Stop,
		"killed":   func(s *pgserver.Server) error { return syscall.Kill(s.PID(), syscall.SIGKILL) },
		"resumed":  func(s *pgserver.Server) error { return errors.Join(s.Pause(), s.Resume()) },
		"unguided": func(s *pgserver.Server) error { return syscall.Kill(s.WatchdogPID(), syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			connect(t, s.DSN("postgres"))
			pid := s.PID()
			if err := prepare(s); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := s.Stop(); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := os.Lstat(s.Dir()); !os.IsNotExist(err) {
				t.Errorf("%s is left: %v", s.Dir(), err)
			}
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("process %d: %v", pid, err)
			}
		})
	}
}

func TestStoppedServerSaysSo(t *testing.T) {
	t.Parallel()
	s := start(t)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	_, createErr := s.CreateDatabase(ctx, "x")
	_, standbyErr := s.Standby(ctx)
	for name, err := range map[string]error{
		"Shutdown": s.Shutdown(), "Crash": s.Crash(), "Restart": s.Restart(ctx), "Pause": s.Pause(), "Resume": s.Resume(),
		"Promote": s.Promote(ctx), "CreateDatabase": createErr, "Standby": standbyErr,
	} {
		if !errors.Is(err, pgserver.ErrStopped) {
			t.Errorf("%s: %v, want ErrStopped", name, err)
		}
	}
	if s.PID() != 0 {
		t.Errorf("PID %d", s.PID())
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	for name, down := range map[string]func(*pgserver.Server) error{
		"after Shutdown":       (*pgserver.Server).Shutdown,
		"after Crash":          (*pgserver.Server).Crash,
		"of a running server":  func(*pgserver.Server) error { return nil },
		"after Pause":          (*pgserver.Server).Pause,
		"after a crash paused": func(s *pgserver.Server) error { return errors.Join(s.Pause(), s.Crash()) },
		"after it was killed":  func(s *pgserver.Server) error { return syscall.Kill(s.PID(), syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			c, open := connect(t, s.DSN("postgres")), connect(t, s.DSN("postgres"))
			execute(t, c, "create table t (n int)")
			execute(t, open, "begin", "insert into t values (-1)")
			for range 50 {
				execute(t, c, "insert into t values (1)")
			}
			port, pid := s.Port(), s.PID()
			if err := down(s); err != nil {
				t.Fatal(err)
			}
			if err := s.Restart(context.Background()); err != nil {
				t.Fatal(err)
			}
			if s.Port() != port || s.PID() == pid || s.PID() == 0 {
				t.Errorf("port %d, was %d; process %d, was %d", s.Port(), port, s.PID(), pid)
			}
			if got := value(t, connect(t, s.DSN("postgres")), "select sum(n) from t"); got != "50" {
				t.Errorf("the table adds up to %s, want the 50 that were committed", got)
			}
			if err := open.Ping(context.Background()); err == nil {
				t.Error("a connection lived through the restart")
			}
		})
	}
}

func TestDown(t *testing.T) {
	t.Parallel()
	s := start(t)
	if err := s.Crash(); err != nil {
		t.Fatal(err)
	}
	if s.PID() != 0 {
		t.Errorf("PID %d of a server that is down", s.PID())
	}
	if err := errors.Join(s.Shutdown(), s.Crash(), s.Resume()); err != nil {
		t.Errorf("a second time: %v", err)
	}
	mustFail(t, s.Pause(), "down")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Restart(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Restart with a context that has ended: %v", err)
	}
	if err := s.Restart(context.Background()); err != nil {
		t.Errorf("Restart after a Restart that failed: %v", err)
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	s := start(t)
	c, paused := connect(t, s.DSN("postgres")), connect(t, s.DSN("postgres"))
	backend := value(t, c, "pg_backend_pid()")
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := s.Pause(); err != nil {
		t.Errorf("a second time: %v", err)
	}
	states := pgserver.States(t, s.PID())
	if len(states) < 5 {
		t.Errorf("processes: %v", states)
	}
	for pid, state := range states {
		if state != "T" && state != "Z" { // one that has ended meanwhile waits for the server to notice
			t.Errorf("process %d is in state %s", pid, state)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if err := paused.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a paused server answers: %v", err)
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := value(t, c, "pg_backend_pid()"); got != backend {
		t.Errorf("backend %s, was %s", got, backend)
	}
}
