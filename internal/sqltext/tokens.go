package sqltext

import (
	"slices"
	"strings"
)

// tokens are the words and signs of a text. A place is the number of one of them. It may be before the first or after the last one.
type tokens struct {
	text   string
	all    []token
	ends   []int // for a token that opens a bracket the place of the closing one, else its own place
	unread bool  // the brackets do not match, or something is not understood
}

func newTokens(text string, escapes bool) (*tokens, lexer) {
	ts := &tokens{text: text, all: make([]token, 0, 64)}
	l := lexer{text: text, escapes: escapes}
	var open []int
	for t := l.next(); t.kind != eof; t = l.next() {
		here := len(ts.all)
		ts.all, ts.ends = append(ts.all, t), append(ts.ends, here)
		switch {
		case t.kind == opening, ts.sign(here, "["):
			open = append(open, here)
		case t.kind == closing, ts.sign(here, "]"):
			if len(open) == 0 {
				ts.unread = true
				return ts, l
			}
			ts.ends[open[len(open)-1]] = here
			open = open[:len(open)-1]
		}
	}
	ts.unread = len(open) > 0
	return ts, l
}

func (t *tokens) kind(at int) kind {
	if at < 0 || at >= len(t.all) {
		return eof
	}
	return t.all[at].kind
}

func (t *tokens) is(at int, keyword string) bool {
	return t.kind(at) == word && is(t.text, t.all[at], keyword)
}

func (t *tokens) isAny(at int, keywords ...string) bool {
	return slices.ContainsFunc(keywords, func(keyword string) bool { return t.is(at, keyword) })
}

// isKeyword is isAny for words that can also be names of columns: not after AS or a dot.
func (t *tokens) isKeyword(at int, keywords ...string) bool {
	return t.isAny(at, keywords...) && !t.is(at-1, "as") && !t.sign(at-1, ".")
}

func (t *tokens) sign(at int, sign string) bool {
	return t.kind(at) == other && t.between(at, at+1) == sign
}

func (t *tokens) opens(at int) bool { return t.kind(at) == opening }

func (t *tokens) closes(at int) bool { return t.kind(at) == closing }

func (t *tokens) isName(at int) bool {
	kind := t.kind(at)
	return kind == word || kind == quoted || kind == coded
}

// between is the text between two places.
func (t *tokens) between(at, end int) string { return t.text[t.all[at].start:t.all[end-1].end] }

// name is a name as the server understands it.
func (t *tokens) name(at int) string { return name(t.text, t.all[at]) }

// written is a name without its quotes. An unquoted name keeps its case, because not every server folds it.
func (t *tokens) written(at int) string {
	if t.kind(at) == word {
		return t.between(at, at+1)
	}
	return t.name(at)
}

// path is a qualified name, without white space and comments between its parts.
func (t *tokens) path(at, end int) string {
	var b strings.Builder
	for ; at < end; at++ {
		b.WriteString(t.between(at, at+1))
	}
	return b.String()
}

// isPath reports whether the tokens are names with dots between them.
func (t *tokens) isPath(at, end int) bool {
	for i := at; i < end; i++ {
		if (i-at)%2 == 0 && !t.isName(i) || (i-at)%2 == 1 && !t.sign(i, ".") {
			return false
		}
	}
	return true
}

// pathEnd is the end of the qualified name that begins at a place.
func (t *tokens) pathEnd(at int) int {
	for at++; t.sign(at, ".") && t.isName(at+1); {
		at += 2
	}
	return at
}

// find is the place of the first token outside of brackets for which found returns true, or end.
func (t *tokens) find(at, end int, found func(at int) bool) int {
	for at < end && !found(at) {
		at = t.ends[at] + 1
	}
	return min(at, end)
}

// comma is the place of the first comma outside of brackets, or end.
func (t *tokens) comma(at, end int) int {
	return t.find(at, end, func(at int) bool { return t.sign(at, ",") })
}
