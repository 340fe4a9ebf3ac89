package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// built is the binary under test. It exists as long as a test uses it.
var built struct {
	sync.Mutex
	users int
	dir   string
	err   error
}

// binary builds the program, with the race detector if the test has it.
func binary(t *testing.T) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.users == 0 {
		built.dir, built.err = build()
	}
	built.users++
	t.Cleanup(func() {
		built.Lock()
		defer built.Unlock()
		if built.users--; built.users == 0 {
			_ = os.RemoveAll(built.dir)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "gormlock")
}

func build() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "gormlock-cli-"); err != nil {
		return "", err
	}
	args := []string{"build", "-o", filepath.Join(dir, "gormlock")}
	if raceEnabled {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		return dir, errors.New(string(out))
	}
	return dir, nil
}

// result is how a run ended.
type result struct {
	code        int
	out, stderr string
}

// program is a run of the binary. Its environment only names the server of the test.
type program struct {
	args  []string
	env   []string
	stdin string
}

// bound is how long a run may take on a slow machine.
const bound = 60 * time.Second

func (p program) command(t *testing.T) *exec.Cmd {
	t.Helper()
	path := binary(t) // building may take longer
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, p.args...)
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "PG") && name != "DATABASE_URL" && name != "NO_COLOR" {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "HOME="+t.TempDir(), "GORACE=halt_on_error=1 exitcode=66 atexit_sleep_ms=0")
	cmd.Env = append(cmd.Env, p.env...)
	cmd.Stdin = strings.NewReader(p.stdin)
	return cmd
}

func (p program) run(t *testing.T) result {
	t.Helper()
	cmd := p.command(t)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	r := result{cmd.ProcessState.ExitCode(), out.String(), stderr.String()}
	if strings.Contains(r.stderr, "goroutine ") || r.code < 0 || r.code > 2 {
		t.Fatalf("gormlock %s ended with %d:\n%s%s", strings.Join(p.args, " "), r.code, r.out, r.stderr)
	}
	return r
}

// on runs the binary on a server.
func on(t *testing.T, dsn string, args ...string) result {
	t.Helper()
	return program{args: args, env: []string{"DATABASE_URL=" + dsn}}.run(t)
}

// offline runs the binary without any server.
func offline(t *testing.T, args ...string) result {
	t.Helper()
	return program{args: args}.run(t)
}

// is fails the test unless the run ended with code and printed all of the words. An error must be one line of gormlock's.
func (r result) is(t *testing.T, code int, says ...string) {
	t.Helper()
	var wrong []string
	if r.code != code {
		wrong = append(wrong, fmt.Sprintf("its exit code is %d, not %d", r.code, code))
	}
	for _, word := range says {
		if !strings.Contains(r.out+r.stderr, word) {
			wrong = append(wrong, fmt.Sprintf("it does not say %q", word))
		}
	}
	if code == 2 && (strings.Count(r.stderr, "\n") != 1 || !strings.HasPrefix(r.stderr, "gormlock: ")) {
		wrong = append(wrong, "its error is not one line of gormlock's")
	}
	if len(wrong) > 0 {
		t.Errorf("%s; it printed:\n%s\nand on standard error:\n%s", strings.Join(wrong, ", "), r.out, r.stderr)
	}
}

// eventually waits until look returns true. Otherwise the test fails, with what look last returned.
func eventually(t *testing.T, what string, look func() (bool, string)) {
	t.Helper()
	limit := time.After(bound)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		yes, seen := look()
		if yes {
			return
		}
		select {
		case <-limit:
			t.Fatalf("no %s: %q", what, seen)
		case <-tick.C:
		}
	}
}
