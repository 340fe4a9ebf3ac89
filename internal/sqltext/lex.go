package sqltext

import "strings"

// token is one word or sign of a text.
type token struct {
	kind       kind
	start, end int // in the text, quotes included
}

type kind uint8

const (
	eof kind = iota
	semicolon
	word   // a keyword, or a name without quotes
	quoted // a name in quotes
	coded  // a name in quotes with code points: U&"…"
	opening
	closing
	other // a string, a number, any other sign
)

// lexer takes a text apart.
type lexer struct {
	text string
	at   int

	escapes      bool // a backslash in a plain string escapes the next character: standard_conforming_strings is off
	backslash    bool // there is one in a plain string, so escapes makes a difference
	unterminated bool // a string, a quoted name or a comment has no end
}

func (l *lexer) next() token {
	l.blank()
	start := l.at
	if start >= len(l.text) {
		return token{eof, start, start}
	}
	return token{l.scan(), start, l.at}
}

// scan moves past the token that begins here.
func (l *lexer) scan() kind {
	c := l.text[l.at]
	switch {
	case c == ';':
		l.at++
		return semicolon
	case c == '(':
		l.at++
		return opening
	case c == ')':
		l.at++
		return closing
	case c == '"', c == '`':
		l.quote(c, false)
		return quoted
	case c == '\'':
		l.plain()
		return other
	case c == '$':
		l.dollar()
		return other
	case startsWord(c):
		return l.word()
	default:
		l.at++
		if c >= '0' && c <= '9' {
			l.while(inWord) // 1e5, 0xff
		}
		return other
	}
}

// word moves past a name, or past a string or quoted name that begins with a letter.
func (l *lexer) word() kind {
	start := l.at
	l.while(inWord)
	rest := l.text[l.at:]
	if l.at-start != 1 || rest == "" {
		return word
	}
	switch letter := l.text[start] | 0x20; {
	case rest[0] == '\'' && letter == 'e':
		l.continued(true)
		return other
	case rest[0] == '\'' && (letter == 'b' || letter == 'x'):
		l.quote('\'', false)
		return other
	case rest[0] == '\'' && letter == 'n':
		l.plain()
		return other
	case letter == 'u' && strings.HasPrefix(rest, `&"`):
		l.at++
		l.quote('"', false)
		return coded
	case letter == 'u' && strings.HasPrefix(rest, "&'"):
		l.at++
		l.quote('\'', false)
		return other
	}
	return word
}

// plain moves past a string without a letter before it.
func (l *lexer) plain() {
	start := l.at
	l.continued(l.escapes)
	l.backslash = l.backslash || strings.IndexByte(l.text[start:l.at], '\\') >= 0
}

// continued moves past a string, including its continuation in the next line.
func (l *lexer) continued(escapes bool) {
	for {
		l.quote('\'', escapes)
		end := l.at
		if !escapes { // a continuation can be read as a string of its own, to the same effect
			return
		}
		l.blank()
		if l.at >= len(l.text) || l.text[l.at] != '\'' || !strings.ContainsAny(l.text[end:l.at], "\n\r") {
			l.at = end
			return
		}
	}
}

// quote moves past the next mark that is not doubled.
func (l *lexer) quote(mark byte, escapes bool) {
	l.at++
	for l.at < len(l.text) {
		switch c := l.text[l.at]; {
		case c == '\\' && escapes:
			l.at += 2
		case c != mark:
			l.at++
		case l.at+1 < len(l.text) && l.text[l.at+1] == mark:
			l.at += 2
		default:
			l.at++
			return
		}
	}
	l.at, l.unterminated = len(l.text), true
}

// dollar moves past a string in dollar quotes, or past a lone dollar sign.
func (l *lexer) dollar() {
	tag := l.at + 1
	for tag < len(l.text) && inWord(l.text[tag]) && l.text[tag] != '$' {
		tag++
	}
	if tag >= len(l.text) || l.text[tag] != '$' || l.text[l.at+1] >= '0' && l.text[l.at+1] <= '9' { // a parameter
		l.at++
		return
	}
	mark := l.text[l.at : tag+1]
	end := strings.Index(l.text[tag+1:], mark)
	if end < 0 {
		l.at, l.unterminated = len(l.text), true
		return
	}
	l.at = tag + 1 + end + len(mark)
}

// blank moves past white space and comments.
func (l *lexer) blank() {
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		switch {
		case isSpace(rest[0]):
			l.at++
		case strings.HasPrefix(rest, "--"):
			if end := strings.IndexAny(rest, "\n\r"); end >= 0 {
				l.at += end
			} else {
				l.at = len(l.text)
			}
		case strings.HasPrefix(rest, "/*"):
			l.comment()
		default:
			return
		}
	}
}

// comment moves past a comment and the comments nested in it.
func (l *lexer) comment() {
	depth := 0
	for l.at < len(l.text) {
		switch rest := l.text[l.at:]; {
		case strings.HasPrefix(rest, "/*"):
			depth++
			l.at += 2
		case strings.HasPrefix(rest, "*/"):
			depth--
			l.at += 2
			if depth == 0 {
				return
			}
		default:
			l.at++
		}
	}
	l.unterminated = true
}

func (l *lexer) while(in func(byte) bool) {
	for l.at < len(l.text) && in(l.text[l.at]) {
		l.at++
	}
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func startsWord(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80
}

func inWord(c byte) bool { return startsWord(c) || c >= '0' && c <= '9' || c == '$' }
