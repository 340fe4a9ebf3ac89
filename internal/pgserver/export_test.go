package pgserver

import (
	"context"
	"os/exec"
	"testing"
)

// Places makes Start look for installations in other places.
func Places(patterns ...string) Option { return placesOption(patterns) }

// Repository makes Start download binaries from another place.
func Repository(url string) Option { return repository(url) }

// Free is how many bytes may be written below a directory.
func Free(dir string) uint64 { return free(dir) }

// Dir is the directory of a server.
func (s *Server) Dir() string { return s.dir }

// Template is where the files are kept that a new server of this installation is copied from.
func (s *Server) Template() (string, error) { return s.template() }

// Fetch unpacks downloaded binaries into dir.
func Fetch(ctx context.Context, cache, dir, repository string) error {
	return fetchOnce(ctx, cache, dir, repository)
}

// Newer compares two versions.
func Newer(a, b string) bool { return newer(a, b) }

// MakeDir makes a directory as Start would.
func MakeDir() (string, error) {
	a, err := findAccount()
	if err != nil {
		return "", err
	}
	dir, w, err := a.makeDir(a.parents(false)...)
	if err == nil {
		w.dismiss()
	}
	return dir, err
}

type placesOption []string

func (o placesOption) apply(c *config) error {
	c.places = o
	return nil
}

type repository string

func (o repository) apply(c *config) error {
	c.repository = string(o)
	return nil
}

// Command is a command that runs as the server's user.
func (s *Server) Command(name string, args ...string) *exec.Cmd {
	return s.account.command(context.Background(), "/", name, args...)
}

// WatchdogPID is the process id of the watchdog.
func (s *Server) WatchdogPID() int { return s.watchdog.cmd.Process.Pid }

// States are the states of a server's processes.
func States(t testing.TB, pid int) map[int]string {
	family, err := familyOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	ps, err := familyByPS(pid)
	if err != nil || len(ps) != len(family) {
		t.Errorf("ps shows %v (%v), /proc %v", ps, err, family)
	}
	states := map[int]string{}
	for _, p := range family {
		states[p.pid] = string(p.state)
	}
	return states
}
