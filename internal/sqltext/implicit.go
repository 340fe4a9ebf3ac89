package sqltext

import "strings"

// Implicit is how a text of MariaDB or MySQL may end its transaction without saying so.
type Implicit uint8

// The ways. A statement about tables or users commits itself and all before it. A routine can contain a COMMIT or ROLLBACK.
const (
	Nothing Implicit = iota
	Commits
	Calls
)

// plain are the first words of statements that leave their transaction open, and of the commands that [Read] finds.
var plain = map[string]bool{
	"select": true, "insert": true, "update": true, "delete": true, "replace": true, "with": true, "values": true, "do": true, "set": true, "show": true, "use": true,
	"describe": true, "desc": true, "explain": true, "handler": true, "load": true, "table": true, "kill": true, "help": true, "signal": true, "get": true,
	"savepoint": true, "release": true, "rollback": true, "commit": true, "begin": true, "start": true, "xa": true, "prepare": true, "deallocate": true,
}

// ImplicitIn reads how a text may end its transaction.
func ImplicitIn(text string) Implicit {
	if isPlainWrite(text) {
		return Nothing
	}
	found := Nothing
	l := lexer{text: text, escapes: true}
	for more := true; more; {
		s := statement{}
		more = s.read(&l)
		if s.count == 0 || s.head[0].kind != word {
			continue
		}
		switch first := strings.ToLower(text[s.head[0].start:s.head[0].end]); {
		case first == "call" || first == "execute":
			found = Calls
		case !plain[first] && found == Nothing:
			found = Commits
		}
	}
	return found
}
