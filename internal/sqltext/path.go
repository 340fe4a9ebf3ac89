package sqltext

import (
	"slices"
	"strings"
)

// renames reports whether the name of a table may stand for another one after the statement: it may change the search_path, or the
// role, which search_path may name, or it makes, drops or renames tables.
func (s *statement) renames(text string) bool {
	if s.path {
		return true
	}
	first, second := s.head[0], s.head[1]
	switch {
	case is(text, first, "create"), is(text, first, "alter"), is(text, first, "drop"), is(text, first, "import"), is(text, first, "use"), is(text, first, "discard"):
		return true
	case is(text, first, "do"), is(text, first, "call"): // what their code does is not seen
		return true
	case is(text, first, "reset"):
		return is(text, second, "all") || decidesPath(name(text, second)) || is(text, second, "session")
	case is(text, first, "set"):
		if is(text, second, "local") || is(text, second, "session") && !is(text, s.head[2], "authorization") {
			second = s.head[2]
		}
		return is(text, second, "schema") || is(text, second, "session") || decidesPath(name(text, second))
	}
	return false
}

// makesTable reports whether a word is the INTO of SELECT INTO.
func makesTable(text string, t, before token) bool {
	return is(text, t, "into") && !is(text, before, "insert") && !is(text, before, "merge")
}

func decidesPath(setting string) bool {
	return slices.ContainsFunc([]string{"search_path", "role", "session_authorization"}, func(known string) bool { return strings.EqualFold(setting, known) })
}

// isOfPath reports whether the call of set_config whose arguments follow may be about the search_path or the role. What is no plain
// string is known to the server only.
func isOfPath(arguments string) bool {
	setting, plain := strings.CutPrefix(strings.TrimLeft(arguments, " \t\r\n("), "'")
	setting, _, ends := strings.Cut(setting, "'")
	return !plain || !ends || decidesPath(setting)
}
