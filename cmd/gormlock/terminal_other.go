//go:build !(linux || darwin || freebsd || netbsd || dragonfly)

package main

import "os"

// isTerminal is right about consoles, and takes NUL for one.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func ioctlSize(*os.File) (columns, lines int) { return 0, 0 }

// suspensions never tells: there is no Ctrl-Z here.
func suspensions() (c <-chan os.Signal, stop func()) { return nil, func() {} }

func suspend() error { return nil }
