package main

import "os"

// style colours text, or leaves it alone.
type style bool

// styleOf colours on a terminal, unless NO_COLOR is set or the terminal is dumb.
func styleOf(f *os.File) style {
	return style(os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(f))
}

func (s style) bold(text string) string   { return s.paint("1", text) }
func (s style) dim(text string) string    { return s.paint("2", text) }
func (s style) red(text string) string    { return s.paint("31", text) }
func (s style) green(text string) string  { return s.paint("32", text) }
func (s style) yellow(text string) string { return s.paint("33", text) }

func (s style) paint(code, text string) string {
	if !s || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
