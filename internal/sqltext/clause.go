package sqltext

import "strings"

// HasClause reports whether a query has a clause that begins with these words, outside of its comments, strings and brackets. A server setting
// can decide where strings end: then the query must have the clause in each reading that is complete.
func HasClause(query, words string) bool {
	has, l := hasClause(query, words, false)
	if !l.backslash {
		return has
	}
	switch escaped, e := hasClause(query, words, true); {
	case e.unterminated:
		return has
	case l.unterminated:
		return escaped
	default:
		return has && escaped
	}
}

func hasClause(query, words string, escapes bool) (has bool, _ lexer) {
	l := lexer{text: query, escapes: escapes}
	first, _, _ := strings.Cut(words, " ")
	open := 0
	for t := l.next(); t.kind != eof; t = l.next() {
		switch {
		case t.kind == opening:
			open++
		case t.kind == closing:
			open--
		case open == 0 && t.end-t.start == len(first) && strings.HasPrefix(query[t.start:], words):
			has = true
		}
	}
	return has, l
}
