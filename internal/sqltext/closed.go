package sqltext

import "strings"

// IsClosed reports whether a part of a text closes no parenthesis that it did not open. It says so only if that holds whether or not
// the server takes a backslash for an escape, which its settings decide.
func IsClosed(part string) bool {
	closed, backslash := isClosed(part, false)
	if closed && backslash {
		closed, _ = isClosed(part, true)
	}
	return closed
}

func isClosed(part string, escapes bool) (closed, backslash bool) {
	l := lexer{text: part, escapes: escapes}
	for open := 0; open >= 0; {
		switch l.next().kind {
		case eof:
			return true, l.backslash
		case opening:
			open++
		case closing:
			open--
		case semicolon, word, quoted, coded, other:
		}
	}
	return false, l.backslash
}

// IsClosedOnMySQL is IsClosed for MariaDB and MySQL. Their comments begin with # too and do not nest, those with a ! are read, and a
// setting decides whether a name or a string stands between double quotes.
func IsClosedOnMySQL(part string) bool {
	if strings.Contains(part, "/*!") || strings.Contains(part, "/*M!") {
		return !strings.ContainsAny(part, "()") // the version of the server decides what it reads of these
	}
	for _, escaped := range [...]string{"", `'`, `"`, `'"`} { // the quotes between which a backslash is an escape
		if !isClosedWhere(part, escaped) {
			return false
		}
	}
	return true
}

func isClosedWhere(part, escaped string) bool {
	open := 0
	for at := 0; at < len(part); at++ {
		rest := part[at:]
		switch c := part[at]; {
		case c == '(':
			open++
		case c == ')' && open == 0:
			return false
		case c == ')':
			open--
		case c == '\'', c == '"', c == '`':
			l := lexer{text: part, at: at}
			l.quote(c, strings.IndexByte(escaped, c) >= 0)
			at = l.at - 1
		case strings.HasPrefix(rest, "/*"):
			at += len("/*") + until(rest[len("/*"):], "*/") - 1
		case c == '#', strings.HasPrefix(rest, "--") && (len(rest) == 2 || rest[2] <= ' '):
			at += until(rest, "\n") - 1
		}
	}
	return true
}

// until is the end of what a mark ends, or of the text.
func until(text, mark string) int {
	if end := strings.Index(text, mark); end >= 0 {
		return end + len(mark)
	}
	return len(text)
}
