package main_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/gormlock/gormlock/internal/pgtest"
)

// The terminal is restored, however watch ends.
func TestWatch_redrawsAndGivesTheTerminalBack(t *testing.T) {
	t.Parallel()
	s := stage(t)
	for name, stop := range map[string]func(*screen){
		"by Ctrl-C":  func(w *screen) { w.types("\x03") },
		"by SIGTERM": func(w *screen) { _ = w.cmd.Process.Signal(syscall.SIGTERM) },
	} {
		w := terminal(t, program{args: []string{"watch", "--interval", "20ms"}, env: []string{"DATABASE_URL=" + s.dsn}})
		w.shows("2 requests wait")
		w.shows("Ctrl-C ends")
		stop(w)
		out := w.end(0)
		if !strings.HasPrefix(out, "\x1b[?1049h\x1b[?25l") || !strings.HasSuffix(out, "\x1b[?25h\x1b[?1049l") {
			t.Errorf("%s: the terminal is not given back: %q", name, out[max(0, len(out)-80):])
		}
		for frame := range strings.SplitSeq(out, "\x1b[H") {
			if lines := strings.Count(frame, "\n"); lines > 11 {
				t.Errorf("%s: a frame of %d lines on a terminal of 12", name, lines)
			}
		}
	}
}

// Ctrl-Z gives the terminal to the shell, and coming back takes it again.
func TestWatch_canBeSuspended(t *testing.T) {
	t.Parallel()
	w := terminal(t, program{args: []string{"watch", "--interval", "20ms"}, env: []string{"DATABASE_URL=" + pgtest.DSN(t)}})
	w.shows("Ctrl-C ends")
	w.types("\x1a")
	state := func() string {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		return rest[:1]
	}
	eventually(t, "stopped process", func() (bool, string) { return state() == "T", state() })
	w.shows("\x1b[?25h\x1b[?1049l")
	if err := w.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.shows("\x1b[?25h\x1b[?1049l\x1b[?1049h\x1b[?25l\x1b[H")
	w.types("\x03")
	w.end(0)
}

func TestWatch_onATerminalSaysThatTheServerIsGone(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	w := terminal(t, program{args: []string{"watch", "--interval", "20ms"}, env: []string{"DATABASE_URL=" + server.DSN("postgres")}})
	w.shows("0 requests wait")
	if err := server.Crash(); err != nil {
		t.Fatal(err)
	}
	w.shows("the server is gone: ")
	w.shows("below is what was seen")
	w.types("\x03")
	w.end(0)
}

func TestCancel_asksOnATerminal(t *testing.T) {
	t.Parallel()
	s := stage(t)
	w := terminal(t, program{args: []string{"cancel", s.billing.arg()}, env: []string{"DATABASE_URL=" + s.dsn}})
	w.shows("cancel this statement? [y/N] ")
	w.types("n\n")
	if out := w.end(1); !strings.Contains(out, "not confirmed") {
		t.Errorf("%q", out)
	}
	w = terminal(t, program{args: []string{"cancel", s.billing.arg()}, env: []string{"DATABASE_URL=" + s.dsn}})
	w.shows("cancel this statement? [y/N] ")
	w.types("\x03")
	w.end(1)
	w = terminal(t, program{args: []string{"cancel", s.billing.arg()}, env: []string{"DATABASE_URL=" + s.dsn}})
	w.shows("cancel this statement? [y/N] ")
	w.types("y\n")
	if out := w.end(0); !strings.Contains(out, "the statement has ended") {
		t.Errorf("%q", out)
	}
	<-s.billing.done
}
