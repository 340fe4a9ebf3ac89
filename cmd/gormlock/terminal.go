package main

import (
	"os"
	"strconv"
)

// size is how many columns and lines the terminal has. COLUMNS and LINES count where
// the system does not say.
func size(f *os.File) (columns, lines int) {
	columns, lines = ioctlSize(f)
	if columns <= 0 {
		columns = variable("COLUMNS", 80)
	}
	if lines <= 0 {
		lines = variable("LINES", 24)
	}
	return columns, lines
}

func variable(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// The screen that watch draws on, and what gives the terminal back as it was.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // another screen, no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	fromTheTop  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)
