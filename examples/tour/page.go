package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// page is what the reader sees. It counts what came out right and what did not.
type page struct {
	out          io.Writer
	colour       bool
	right, wrong int
}

const (
	bold  = "1"
	dim   = "2"
	red   = "1;31"
	green = "32"
	cyan  = "36"
)

// colourful reports whether out is a terminal whose user has nothing against colour.
func colourful(out *os.File) bool {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := out.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *page) paint(style, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

func (p *page) line(text string) {
	fmt.Fprintln(p.out, strings.TrimRight(text, " ")) //nolint:errcheck // a reader who has closed the pipe needs no more
}

func (p *page) title(text, place string) {
	p.line(p.paint(bold, text))
	p.line(p.paint(dim, place))
}

func (p *page) heading(text string) {
	p.line("")
	p.line(p.paint(bold, text))
}

func (p *page) chapter(n int, title string) {
	p.heading(fmt.Sprintf("%d. %s", n, title))
}

// say tells what happens and why.
func (p *page) say(format string, args ...any) {
	p.paragraph("   ", "   ", fmt.Sprintf(format, args...))
}

// paragraph breaks text between words where a line gets long. The first line has first before it, the others then.
func (p *page) paragraph(first, then, text string) {
	const widest = 110
	line, width := first, len(then)
	for i, word := range strings.Fields(text) {
		if i > 0 && width+len(word) > widest {
			p.line(line)
			line, width = then, len(then)
		} else if i > 0 {
			line, width = line+" ", width+1
		}
		line, width = line+word, width+len(word)
	}
	p.line(line)
}

// code shows what somebody writes.
func (p *page) code(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		p.line("     " + p.paint(cyan, strings.ReplaceAll(line, "\t", "    ")))
	}
}

// check tells an outcome, and whether it is the right one.
func (p *page) check(right bool, format string, args ...any) {
	verdict := p.paint(green, "ok")
	if right {
		p.right++
	} else {
		p.wrong++
		verdict = p.paint(red, "NOT OK")
	}
	p.paragraph("   "+verdict+"  ", "       ", fmt.Sprintf(format, args...))
}
