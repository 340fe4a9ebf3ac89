package sqltext

import (
	"regexp"
	"slices"
	"strings"
)

// turn is what a statement does to the tables that names stand for.
type turn struct {
	path    bool // it sets the search_path or the role, by its own words
	names   bool // a name may stand for another table after it
	session bool // also when the transaction has ended: the connection has another search_path, or another role, which that may name
	tables  bool // it may make, drop or rename tables
}

// turns reads what a statement does to names. What a role is called may be in the search_path.
func (s *statement) turns(text string) turn {
	first, second := s.head[0], s.head[1]
	switch {
	case s.path:
		return turn{names: true, session: true, path: true}
	case s.makes, is(text, first, "create"), is(text, first, "alter"), is(text, first, "drop"), is(text, first, "import"):
		return turn{names: true, tables: true}
	case is(text, first, "do"), is(text, first, "call"): // what their code does is not seen
		return turn{names: true, tables: true}
	case is(text, first, "use"), is(text, first, "discard"):
		return turn{names: true, session: true, path: true}
	case is(text, first, "reset"):
		sets := is(text, second, "all") || decidesPath(name(text, second)) || is(text, second, "session")
		return turn{names: sets, session: sets, path: sets}
	case is(text, first, "set"):
		local := is(text, second, "local")
		if local || is(text, second, "session") && !is(text, s.head[2], "authorization") {
			second = s.head[2]
		}
		sets := is(text, second, "schema") || is(text, second, "session") || decidesPath(name(text, second))
		return turn{names: sets, session: sets && !local, path: sets}
	}
	return turn{}
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

var onlySchema = regexp.MustCompile(`(?i)^\s*set\s+(?:local\s+|session\s+)?(?:search_path\s*(?:to|=)|schema)\s*(\w+|"[^"$]+"|'[^',]+')\s*;?\s*$`)

// OnlySchema is the one schema where a text says that names are looked up, as the text spells it. It is empty if there are several, or if that
// is not plain.
func OnlySchema(text string) string {
	if found := onlySchema.FindStringSubmatch(text); found != nil && !strings.EqualFold(found[1], "default") {
		return strings.Trim(found[1], `"'`)
	}
	return ""
}
