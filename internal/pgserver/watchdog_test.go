package pgserver_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gormlock/gormlock/internal/pgtest"
)

// A program that is killed leaves no server, no directory and no process behind.
func TestKilledProgram(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"running", "in a process group", "restarted", "paused", "with a child of its own", "with a standby", "down"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			dir, program, lines := runChild(t, mode)
			port := ""
			for port == "" || port == "starting" {
				port = next(t, lines)
			}
			if _, err := strconv.Atoi(port); err != nil {
				t.Fatalf("the program says %q", port)
			}
			if mode == "in a process group" {
				// As a terminal or a harness ends a program and all it has started.
				if err := syscall.Kill(-program.Process.Pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
			kill(t, program)
			pgtest.Eventually(t, "removed directory", func() bool { return empty(t, dir) })
			pgtest.Eventually(t, "end of all processes", func() bool { return len(processes(t, dir)) == 0 })
			if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err != nil {
				t.Errorf("the port is not free: %v", err)
			} else {
				_ = l.Close()
			}
		})
	}
}

// The moments at which the program dies are spread over the time that a start takes.
func TestKilledDuringStart(t *testing.T) {
	t.Parallel()
	for step := range 6 {
		after := time.Duration(step) * 200 * time.Millisecond
		t.Run(after.String(), func(t *testing.T) {
			t.Parallel()
			dir, program, lines := runChild(t, "running")
			next(t, lines)
			<-time.After(after)
			kill(t, program)
			pgtest.Eventually(t, "end of all processes", func() bool { return len(processes(t, dir)) == 0 })
			pgtest.Eventually(t, "removed directory", func() bool { return empty(t, dir) })
		})
	}
}

// The program may die as soon as there is a directory, when nothing else has begun.
func TestKilledBeforeTheStart(t *testing.T) {
	t.Parallel()
	for range 20 {
		dir, program, _ := runChild(t, "running")
		pgtest.Eventually(t, "a directory", func() bool { return !empty(t, dir) })
		kill(t, program)
		pgtest.Eventually(t, "removed directory", func() bool { return empty(t, dir) })
	}
}

// A process that only has the number of the server is let alone.
func TestWatchdogKnowsTheServer(t *testing.T) {
	t.Parallel()
	s := start(t)
	if err := s.Shutdown(); err != nil {
		t.Fatal(err)
	}
	innocent := s.Command("sleep", "60")
	if err := innocent.Start(); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(innocent.Process.Pid)
	if err := os.WriteFile(filepath.Join(s.Dir(), "data", "postmaster.pid"), []byte(pid+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := innocent.Process.Kill(); err != nil {
		t.Errorf("the watchdog has killed a stranger: %v", err)
	}
	if err := innocent.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the watchdog has ended a stranger: %v", err)
	}
}

func runChild(t *testing.T, mode string) (dir string, program *exec.Cmd, lines *bufio.Reader) {
	t.Helper()
	dir = openDir(t, 0o777)
	program = exec.Command(os.Args[0])
	program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	program.Env = append(os.Environ(), childMode+"="+mode, "TMPDIR="+dir)
	// The pipe is ours, so that nothing waits for a child's child that holds it too.
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = read.Close() })
	program.Stdout, program.Stderr = write, write
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	return dir, program, bufio.NewReader(read)
}

func next(t *testing.T, lines *bufio.Reader) string {
	t.Helper()
	line, err := lines.ReadString('\n')
	if err != nil {
		rest, _ := io.ReadAll(lines)
		t.Fatalf("the program ended: %v %s%s", err, line, rest)
	}
	return strings.TrimSpace(line)
}

func kill(t *testing.T, program *exec.Cmd) {
	t.Helper()
	if err := program.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	_ = program.Wait()
}

func empty(t *testing.T, dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries) == 0
}

// processes are those with dir in their command line.
func processes(t *testing.T, dir string) []string {
	out, err := exec.Command("ps", "-axo", "pid=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range bytes.Lines(out) {
		if bytes.Contains(line, []byte(dir)) {
			found = append(found, string(line))
		}
	}
	return found
}
