package main_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// screen is a run of the binary on a terminal.
type screen struct {
	t    *testing.T
	cmd  *exec.Cmd
	main *os.File
	read chan struct{} // closed when there is nothing more to read
	out  buffer
}

// terminal runs the binary on a pseudo-terminal of 100 columns and 12 lines.
func terminal(t *testing.T, p program) *screen {
	t.Helper()
	return terminalOf(t, 100, 12, p)
}

func terminalOf(t *testing.T, columns, lines uint16, p program) *screen {
	t.Helper()
	main, other := pty(t, columns, lines)
	defer other.Close()
	s := &screen{t: t, cmd: p.command(t), main: main, read: make(chan struct{})}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = other, other, other
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if !strings.Contains(strings.Join(p.env, " "), "TERM=") {
		s.cmd.Env = append(s.cmd.Env, "TERM=xterm")
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.read)
		_, _ = io.Copy(&s.out, main) // EIO when the other side is closed
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it has ended already, unless the test has failed
		_, _ = s.cmd.Process.Wait()
		_ = main.Close()
		<-s.read
	})
	return s
}

func (s *screen) text() string { return s.out.text() }

// shows waits until the program has shown text.
func (s *screen) shows(text string) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("%q on the terminal", text), func() (bool, string) {
		return strings.Contains(s.text(), text), s.text()
	})
}

func (s *screen) types(text string) {
	s.t.Helper()
	if _, err := s.main.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// end waits for the end of the program and returns all it has shown.
func (s *screen) end(code int) string {
	s.t.Helper()
	_ = s.cmd.Wait()
	<-s.read
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.t.Errorf("exit code %d, want %d: %q", got, code, s.text())
	}
	return s.text()
}

func pty(t *testing.T, columns, lines uint16) (main, other *os.File) {
	t.Helper()
	main, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var number, unlocked uint32
	control(t, main, syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked))
	control(t, main, syscall.TIOCGPTN, unsafe.Pointer(&number))
	other, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	size := [4]uint16{lines, columns}
	control(t, other, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	return main, other
}

// control uses the raw connection, because Fd would make the file a blocking one.
func control(t *testing.T, f *os.File, request uintptr, arg unsafe.Pointer) {
	t.Helper()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		if _, _, code := syscall.Syscall(syscall.SYS_IOCTL, fd, request, uintptr(arg)); code != 0 {
			t.Errorf("ioctl %x: %v", request, code)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestColour_onTerminalsOnly(t *testing.T) {
	t.Parallel()
	if r := offline(t, "key", "invoice", "42"); strings.Contains(r.out, "\x1b") {
		t.Errorf("a pipe gets %q", r.out)
	}
	for env, want := range map[string]bool{"TERM=xterm": true, "NO_COLOR=1": false, "TERM=dumb": false} {
		screen := terminal(t, program{args: []string{"key", "invoice", "42"}, env: []string{env}})
		if got := strings.Contains(screen.end(0), "\x1b[1m"); got != want {
			t.Errorf("%s: coloured %v", env, got)
		}
	}
}
