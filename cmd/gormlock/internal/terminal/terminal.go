package terminal

import (
	"os"
	"strconv"
)

// Size is how many columns and lines the terminal has. If the system does not say, COLUMNS and LINES do.
func Size(f *os.File) (columns, lines int) {
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

// Escapes for the screen of watch, and for restoring the terminal.
const (
	EnterScreen = "\x1b[?1049h\x1b[?25l" // another screen, no cursor
	LeaveScreen = "\x1b[?25h\x1b[?1049l"
	FromTheTop  = "\x1b[H"
	ClearLine   = "\x1b[K"
	ClearBelow  = "\x1b[J"
)

// Clip cuts a line to a number of columns. Colours take none.
func Clip(line string, columns int) string {
	width, escape := 0, false
	for at, r := range line {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		case width == columns:
			return line[:at] + "\x1b[0m"
		default:
			width++
		}
	}
	return line
}
