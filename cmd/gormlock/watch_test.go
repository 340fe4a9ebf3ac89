package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
)

func TestWatch_intoAPipeIsPlain(t *testing.T) {
	t.Parallel()
	s := stage(t)
	r := on(t, s.dsn, "watch", "--interval", "20ms", "--count", "3", "--waiting")
	r.is(t, 0)
	if strings.Contains(r.out, "\x1b") || strings.Count(r.out, "2 requests wait") != 3 {
		t.Errorf("got %q", r.out)
	}
}

func TestWatch_wrongServerIsAnError(t *testing.T) {
	t.Parallel()
	on(t, "postgres://127.0.0.1:1/x", "watch").is(t, 2, "cannot connect to 127.0.0.1:1")
}

// watching runs watch into a pipe. says waits until it has printed a text.
func watching(t *testing.T, dsn string) (cmd *exec.Cmd, out *buffer, says func(text string)) {
	t.Helper()
	cmd, out = program{args: []string{"watch", "--interval", "20ms"}, env: []string{"DATABASE_URL=" + dsn}}.command(t), &buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out, func(text string) {
		t.Helper()
		eventually(t, text, func() (bool, string) { return strings.Contains(out.text(), text), out.text() })
	}
}

// watch says when the server goes away and when it is back, and goes on.
func TestWatch_survivesAServerThatGoesAway(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	cmd, out, says := watching(t, server.DSN("postgres"))
	says("0 requests wait")
	if err := server.Crash(); err != nil {
		t.Fatal(err)
	}
	says("the server is gone: ")
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	says("the server is back after ")
	before := strings.Count(out.text(), "0 requests wait")
	eventually(t, "one more table", func() (bool, string) { return strings.Count(out.text(), "0 requests wait") > before, out.text() })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended by an interrupt: %v\n%s", err, out.text())
	}
	if n := strings.Count(out.text(), "the server is gone"); n != 1 {
		t.Errorf("it says %d times that the server is gone:\n%s", n, out.text())
	}
}

// A silent network is noticed too, within the time of a connection attempt.
func TestWatch_noticesASilentNetwork(t *testing.T) {
	t.Parallel()
	tap, dsn := pgtest.Tap(t, pgtest.DSN(t))
	cmd, _, says := watching(t, dsn)
	says("requests wait")
	tap.Stall()
	says("the server is gone: no answer from the server in time")
	tap.Resume()
	says("the server is back after ")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A script that limits the number of looks learns that the last one failed.
func TestWatch_lastLookAtAServerThatIsGoneIsAnError(t *testing.T) {
	t.Parallel()
	tap, dsn := pgtest.Tap(t, pgtest.DSN(t))
	cmd := program{args: []string{"watch", "--interval", "1s", "--count", "2"}, env: []string{"DATABASE_URL=" + dsn}}.command(t)
	var out buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "first table", func() (bool, string) { return strings.Contains(out.text(), "requests wait"), out.text() })
	if err := tap.Close(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(out.text(), "gormlock: the server is gone: ") {
		t.Errorf("%d\n%s", code, out.text())
	}
}

// buffer is written by one goroutine and read by another.
type buffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *buffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(text)
}

func (b *buffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}
