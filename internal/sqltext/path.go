package sqltext

import (
	"regexp"
	"strings"
)

// Lookup says which settings decide where names of tables are looked up. Roles count because the search_path can contain "$user".
type Lookup uint8

// The settings.
const (
	SearchPath Lookup = 1 << iota
	Role
	SessionUser
	Unclear // the text alone does not say what it sets them to
)

const anyLookup = SearchPath | Role | SessionUser

// turn says how a statement changes which tables names stand for.
type turn struct {
	sets    Lookup // the settings that its text changes
	names   bool   // after it, a name may stand for another table
	session bool   // even after the transaction, because the connection keeps the new search_path or role
	tables  bool   // it may make, drop or rename tables
}

// turns reads what a statement does to names.
func (s *statement) turns(text string) turn {
	first, second := s.head[0], s.head[1]
	switch {
	case s.path:
		return turn{names: true, session: true, sets: setByCall(text)}
	case s.makes, is(text, first, "create"), is(text, first, "alter"), is(text, first, "drop"), is(text, first, "import"):
		return turn{names: true, tables: true}
	case is(text, first, "do"), is(text, first, "call"), s.other && !s.from && is(text, first, "select"): // their code is not in the text
		return turn{names: true, tables: true}
	case is(text, first, "use"):
		return turn{names: true, session: true, sets: SearchPath}
	case is(text, first, "discard"):
		return turn{names: true, session: true, sets: anyLookup | Unclear}
	case is(text, first, "reset"):
		sets := lookupBy(name(text, second))
		if is(text, second, "all") { // RESET ALL leaves the roles alone
			sets = SearchPath
		}
		return turn{names: sets != 0, session: sets != 0, sets: sets}
	case is(text, first, "set"):
		local := is(text, second, "local")
		if local || is(text, second, "session") && !is(text, s.head[2], "authorization") {
			second = s.head[2]
		}
		sets := lookupBy(name(text, second))
		return turn{names: sets != 0, session: sets != 0 && !local, sets: sets}
	}
	return turn{}
}

// makesTable reports whether a word is the INTO of SELECT INTO.
func makesTable(text string, t, before token) bool {
	return is(text, t, "into") && !is(text, before, "insert") && !is(text, before, "merge")
}

// lookupBy is the Lookup for the name of a setting, or for a word after SET.
func lookupBy(setting string) Lookup {
	switch lower(setting) {
	case "search_path", "schema":
		return SearchPath
	case "role":
		return Role
	case "session_authorization", "session":
		return SessionUser
	}
	return 0
}

var oneCall = regexp.MustCompile(`(?i)^\s*select\s+(?:pg_catalog\.)?set_config\s*\(\s*'(\w+)'\s*,\s*'[^'\\]*'\s*,\s*(?:true|false)\s*\)\s*;?\s*$`)

// setByCall is what a text that calls set_config sets.
func setByCall(text string) Lookup {
	if found := oneCall.FindStringSubmatch(text); found != nil {
		return lookupBy(found[1])
	}
	return anyLookup | Unclear
}

// isOfPath reports whether a call of set_config with these arguments may set the search_path or the role. If the first argument is no plain
// string, only the server knows.
func isOfPath(arguments string) bool {
	setting, plain := strings.CutPrefix(strings.TrimLeft(arguments, " \t\r\n("), "'")
	setting, _, ends := strings.Cut(setting, "'")
	return !plain || !ends || lookupBy(setting) != 0
}

var onlySchema = regexp.MustCompile(`(?i)^\s*set\s+(?:local\s+|session\s+)?(?:search_path\s*(?:to|=)|schema)\s*(\w+|"[^"$]+"|'[^',]+')\s*;?\s*$`)

// OnlySchema is the schema of a text that sets the search_path to a single one, as the text spells it. It is empty if there are several, or
// if the text is not that simple.
func OnlySchema(text string) string {
	if found := onlySchema.FindStringSubmatch(text); found != nil && !strings.EqualFold(found[1], "default") {
		return strings.Trim(found[1], `"'`)
	}
	return ""
}
