//go:build !(linux || darwin || freebsd || netbsd || dragonfly)

package terminal

import "os"

// Is recognizes consoles, but mistakes NUL for one.
func Is(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func ioctlSize(*os.File) (columns, lines int) { return 0, 0 }

// Suspensions never sends: there is no Ctrl-Z here.
func Suspensions() (c <-chan os.Signal, stop func()) { return nil, func() {} }

// Suspend does nothing: there is no Ctrl-Z here.
func Suspend() error { return nil }
