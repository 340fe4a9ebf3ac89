package sqltext

import "strings"

// IsClosed reports whether a part of a text closes no parenthesis that it did not open. It reads for a server on which a backslash is no
// escape: that is PostgreSQL's default, and the driver's values rely on it.
func IsClosed(part string) bool {
	l := lexer{text: part}
	for open := 0; open >= 0; {
		switch l.next().kind {
		case eof:
			return true
		case opening:
			open++
		case closing:
			open--
		case semicolon, word, quoted, coded, other:
		}
	}
	return false
}

// IsClosedOnMySQL is IsClosed for MariaDB and MySQL, as they read by default. Comments can begin with # too and do not nest. Comments with
// a ! are executed. Text between double quotes is a string.
func IsClosedOnMySQL(part string) bool {
	if strings.Contains(part, "/*!") || strings.Contains(part, "/*M!") {
		return !strings.ContainsAny(part, "()") // the server's version decides which of these comments it executes
	}
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
			l.quote(c, c != '`')
			at = l.at - 1
		case strings.HasPrefix(rest, "/*"):
			at += len("/*") + until(rest[len("/*"):], "*/") - 1
		case c == '#', strings.HasPrefix(rest, "--") && (len(rest) == 2 || rest[2] <= ' '):
			at += until(rest, "\n") - 1
		}
	}
	return true
}

// until is the length of text up to and including mark, or all of it.
func until(text, mark string) int {
	if end := strings.Index(text, mark); end >= 0 {
		return end + len(mark)
	}
	return len(text)
}
