// Package terminal formats text for people: single lines, colours, tables, and the size of the terminal.
package terminal

import "os"

// Style colours text, or leaves it alone.
type Style bool

// StyleOf colours on a terminal, unless NO_COLOR is set or the terminal is dumb.
func StyleOf(f *os.File) Style {
	return Style(os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && Is(f))
}

// Bold marks the subject of a line.
func (s Style) Bold(text string) string { return s.paint("1", text) }

// Dim marks less important text.
func (s Style) Dim(text string) string { return s.paint("2", text) }

// Red marks what is wrong.
func (s Style) Red(text string) string { return s.paint("31", text) }

// Green marks what is fine.
func (s Style) Green(text string) string { return s.paint("32", text) }

// Yellow marks what needs attention.
func (s Style) Yellow(text string) string { return s.paint("33", text) }

func (s Style) paint(code, text string) string {
	if !s || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
