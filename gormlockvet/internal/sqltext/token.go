package sqltext

import (
	"strings"
	"unicode"
)

type kind uint8

const (
	identifier kind = iota + 1
	punctuation
	value // a number, a text, a parameter
	unknown
)

type token struct {
	kind   kind
	text   string
	quoted bool
	glued  bool // no blank before it
}

// tokens splits a text as PostgreSQL does, as far as tables and columns need it. Comments are left out, and so is what
// stands between dollar quotes.
func tokens(text string) (all []token) {
	blank := true
	for i := 0; i < len(text); {
		rest := text[i:]
		n, t := one(rest)
		if t.kind != 0 {
			t.glued = !blank
			all = append(all, t)
		}
		blank = t.kind == 0
		i += n
	}
	return all
}

func one(rest string) (int, token) {
	switch c := rest[0]; {
	case rest[0] == Unknown[0]:
		return 1, token{kind: unknown}
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		return 1, token{}
	case strings.HasPrefix(rest, "--"):
		return until(rest, "\n", 2), token{}
	case strings.HasPrefix(rest, "/*"):
		return until(rest, "*/", 2), token{}
	case c == '\'':
		return until(rest, "'", 1), token{kind: value}
	case c == '"' || c == '`':
		n := until(rest, rest[:1], 1)
		return n, token{kind: identifier, text: strings.Trim(rest[:n], rest[:1]), quoted: true}
	case c == '$':
		if end := strings.IndexByte(rest[1:], '$'); end >= 0 && isName(rest[1:1+end]) {
			tag := rest[:end+2]
			return until(rest, tag, len(tag)), token{kind: value}
		}
		return 1 + len(letters(rest[1:])), token{kind: value}
	case c == '?':
		return 1, token{kind: value}
	case (c == '@' || c == ':') && len(rest) > 1 && letters(rest[1:]) != "":
		return 1 + len(letters(rest[1:])), token{kind: value}
	case c >= '0' && c <= '9':
		return len(letters(rest)), token{kind: value}
	}
	if word := letters(rest); word != "" {
		return len(word), token{kind: identifier, text: word}
	}
	return 1, token{kind: punctuation, text: rest[:1]}
}

// until returns how long a part is that begins with from characters and ends with end.
func until(rest, end string, from int) int {
	if i := strings.Index(rest[from:], end); i >= 0 {
		return from + i + len(end)
	}
	return len(rest)
}

func letters(text string) string {
	for i, r := range text {
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return text[:i]
		}
	}
	return text
}

func isName(text string) bool {
	return letters(text) == text && (text == "" || text[0] < '0' || text[0] > '9')
}
