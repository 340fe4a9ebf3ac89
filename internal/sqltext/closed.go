package sqltext

// IsClosed reports whether a part of a text closes no parenthesis that it did not open. It reports false only if that is so
// whether or not the server takes a backslash for an escape.
func IsClosed(part string) bool { return isClosed(part, false) || isClosed(part, true) }

func isClosed(part string, escapes bool) bool {
	l := lexer{text: part, escapes: escapes}
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
