// Package terminal is text for people: one line for each thing, colours, tables, and the size of what it is shown on.
package terminal

import "os"

// Style colours text, or leaves it alone.
type Style bool

// StyleOf colours on a terminal, unless NO_COLOR is set or the terminal is dumb.
func StyleOf(f *os.File) Style {
	return Style(os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && Is(f))
}

// Bold is for what a line is about.
func (s Style) Bold(text string) string { return s.paint("1", text) }

// Dim is for what a line can do without.
func (s Style) Dim(text string) string { return s.paint("2", text) }

// Red is for what is wrong.
func (s Style) Red(text string) string { return s.paint("31", text) }

// Green is for what is well.
func (s Style) Green(text string) string { return s.paint("32", text) }

// Yellow is for what needs a look.
func (s Style) Yellow(text string) string { return s.paint("33", text) }

func (s Style) paint(code, text string) string {
	if !s || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
