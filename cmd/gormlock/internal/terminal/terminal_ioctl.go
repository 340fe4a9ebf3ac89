//go:build linux || darwin || freebsd || netbsd || dragonfly

package terminal

import (
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// Is reports whether f is a terminal.
func Is(f *os.File) bool {
	_, err := window(f)
	return err == nil
}

func ioctlSize(f *os.File) (columns, lines int) {
	w, err := window(f)
	if err != nil {
		return 0, 0
	}
	return int(w.columns), int(w.lines)
}

// winsize is the struct of TIOCGWINSZ.
type winsize struct{ lines, columns, _, _ uint16 }

// window fails if f is not a terminal.
func window(f *os.File) (winsize, error) {
	var w winsize
	_, _, code := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&w)))
	if code != 0 {
		return w, code
	}
	return w, nil
}

// Suspensions sends on c for each Ctrl-Z. After stop, Ctrl-Z does what it usually does.
func Suspensions() (c <-chan os.Signal, stop func()) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTSTP)
	return asked, func() { signal.Stop(asked) }
}

// Suspend stops the process until the shell lets it go on.
func Suspend() error { return syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
