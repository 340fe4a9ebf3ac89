package sqltext

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Verb is what a command does to a transaction.
type Verb uint8

// The verbs. A Commit and a Rollback end the transaction. Detach is PREPARE TRANSACTION: the transaction leaves the session, and
// somebody else ends it.
const (
	Begin Verb = iota + 1
	Commit
	Rollback
	Detach
	Savepoint
	Release
	RollbackTo
)

// Command is one transaction command of a text.
type Command struct {
	Verb  Verb
	Name  string // of the savepoint, as the server understands it; empty where only the server knows
	Chain bool   // the next transaction begins at once
	Last  bool   // no other statement follows it in its text
}

// Text is what a text does to its transaction.
type Text struct {
	Commands []Command // in their order
	Single   bool      // the text is one statement
	Writes   bool      // it may write rows
	Counted  bool      // it is one INSERT, UPDATE or DELETE: its answer has the number of written rows
	Renames  bool      // after it, the name of a table may stand for another table
	Roams    bool      // even after the transaction, because the connection keeps the new search_path or role
	Sets     Lookup    // the settings about where names are looked up that it changes
	Setting  string    // the text, if Sets is not 0
	Remakes  bool      // it may make, drop or rename tables
	Unsure   bool      // a setting of the server decides where its strings end, and so what its commands are
}

// Read reads a text. It allocates nothing if there is no command.
func Read(text string) Text {
	if isPlainWrite(text) {
		return Text{Single: true, Writes: true, Counted: true}
	}
	t, l := parse(text, false)
	if !l.backslash {
		t.Unsure = l.unterminated
		return t
	}
	escaped, e := parse(text, true)
	writes, renames := t.Writes || escaped.Writes, t.Renames || escaped.Renames
	roams, remakes, sets, setting := t.Roams || escaped.Roams, t.Remakes || escaped.Remakes, t.Sets|escaped.Sets, cmp.Or(t.Setting, escaped.Setting)
	if l.unterminated && !e.unterminated { // the server accepts no other reading
		t = escaped
	} else {
		t.Unsure = l.unterminated || !e.unterminated && !slices.Equal(t.Commands, escaped.Commands)
	}
	t.Writes, t.Renames, t.Roams, t.Remakes, t.Sets, t.Setting = writes, renames, roams, remakes, sets, setting
	return t
}

// isPlainWrite recognises most writes that GORM sends, without reading them to the end.
func isPlainWrite(text string) bool {
	if len(text) < 7 || text[6] != ' ' || strings.IndexByte(text, ';') >= 0 {
		return false
	}
	return strings.EqualFold(text[:6], "update") || strings.EqualFold(text[:6], "insert") || strings.EqualFold(text[:6], "delete")
}

// Ends reports whether the text ends a transaction.
func (t Text) Ends() bool {
	for _, c := range t.Commands {
		if c.Verb == Commit || c.Verb == Rollback || c.Verb == Detach {
			return true
		}
	}
	return false
}

// Commits reports whether the text commits a transaction.
func (t Text) Commits() bool {
	for _, c := range t.Commands {
		if c.Verb == Commit || c.Verb == Detach {
			return true
		}
	}
	return false
}

// RollsBack reports whether the text leaves the transaction rolled back, with no other one open. If the text failed, it may have done so
// before the failure.
func (t Text) RollsBack(failed bool) (is bool) {
	for _, c := range t.Commands {
		switch c.Verb {
		case Rollback:
			is = !c.Chain
		case Begin, Commit, Detach:
			is = failed && is
		case Savepoint, Release, RollbackTo:
		}
	}
	return is
}

// IsSavepoint reports whether the text is a command about a savepoint, and nothing else.
func (t Text) IsSavepoint() bool {
	return t.Single && !t.Unsure && len(t.Commands) == 1 && t.Commands[0].Verb >= Savepoint
}

// GoesBack reports whether the text rolls back to a savepoint, perhaps among other commands.
func (t Text) GoesBack() bool {
	return slices.ContainsFunc(t.Commands, func(c Command) bool { return c.Verb == RollbackTo })
}

// GoesOn reports whether the text ends a transaction and then continues, in another one or in none.
func (t Text) GoesOn() bool {
	return slices.ContainsFunc(t.Commands, func(c Command) bool {
		return (c.Verb == Commit || c.Verb == Rollback || c.Verb == Detach) && (c.Chain || !c.Last)
	})
}

// parse reads a text with or without escapes in its plain strings.
func parse(text string, escapes bool) (Text, lexer) {
	l := lexer{text: text, escapes: escapes}
	var t Text
	statements := 0
	for {
		s := statement{}
		more := s.read(&l)
		if s.count > 0 {
			if len(t.Commands) > 0 {
				t.Commands[len(t.Commands)-1].Last = false
			}
			statements++
			t.Counted = statements == 1 && s.isCounted(text)
			turn := s.turns(text)
			t.Renames, t.Roams, t.Remakes = t.Renames || turn.names, t.Roams || turn.session, t.Remakes || turn.tables
			if turn.sets != 0 {
				t.Sets, t.Setting = t.Sets|turn.sets, text
			}
			if c := s.command(text); c.Verb != 0 {
				c.Last = true
				t.Commands = append(t.Commands, c)
			} else {
				t.Writes = t.Writes || s.writes(text)
			}
		}
		if !more {
			t.Single = statements == 1
			return t, l
		}
	}
}

// statement is one statement of a text: its first tokens, and what matters of the others.
type statement struct {
	head  [6]token
	count int  // of its tokens
	calls bool // it calls a function that may write, or has a word of a statement that writes
	other bool // it calls a function that is not well known
	from  bool // it has a FROM
	path  bool // it calls set_config for a setting that decides where names are looked up
	makes bool // it is a SELECT INTO
}

// read reads up to the end of the statement, and reports whether another statement may follow.
func (s *statement) read(l *lexer) (more bool) {
	parens, body := 0, 0
	before := token{}
	for {
		t := l.next()
		switch t.kind {
		case eof:
			return false
		case semicolon:
			if parens <= 0 && body == 0 {
				return true
			}
		case opening:
			parens++
			s.calls = s.calls || !harmless(l.text, before)
			s.other = s.other || !isWellKnown(l.text, before)
		case closing:
			parens--
		case word:
			body += s.nesting(l.text, t, body)
			s.calls = s.calls || isWriting(l.text, t, before)
			s.path = s.path || is(l.text, t, "set_config") && isOfPath(l.text[t.end:])
			s.from = s.from || is(l.text, t, "from")
			s.makes = s.makes || makesTable(l.text, t, before)
		case quoted, coded, other:
		}
		if s.count < len(s.head) {
			s.head[s.count] = t
		}
		s.count++
		before = t
	}
}

// nesting returns how a word changes the nesting in the body of a SQL function (BEGIN ATOMIC … END). The statements in a body are not
// statements of the text.
func (s *statement) nesting(text string, t token, body int) int {
	if s.count < 3 || !is(text, s.head[0], "create") {
		return 0
	}
	routine := is(text, s.head[1], "function") || is(text, s.head[1], "procedure") ||
		is(text, s.head[1], "or") && s.count > 3 && (is(text, s.head[3], "function") || is(text, s.head[3], "procedure"))
	switch {
	case !routine:
		return 0
	case is(text, t, "begin"), body > 0 && is(text, t, "case"):
		return 1
	case body > 0 && is(text, t, "end"):
		return -1
	}
	return 0
}

// command is the transaction command that the statement is.
func (s *statement) command(text string) Command {
	if s.head[0].kind != word {
		return Command{}
	}
	second := 1 // the place after WORK or TRANSACTION
	if is(text, s.head[1], "work") || is(text, s.head[1], "transaction") {
		second = 2
	}
	chain := is(text, s.head[second], "and") && is(text, s.head[second+1], "chain")
	first := s.head[0]
	switch {
	case is(text, first, "savepoint"):
		return Command{Verb: Savepoint, Name: name(text, s.head[1])}
	case is(text, first, "release"):
		return Command{Verb: Release, Name: name(text, s.behind(text, 1))}
	case is(text, first, "rollback") && is(text, s.head[second], "to"):
		return Command{Verb: RollbackTo, Name: name(text, s.behind(text, second+1))}
	case is(text, s.head[1], "prepared"): // COMMIT PREPARED and ROLLBACK PREPARED run outside of transactions
	case is(text, first, "rollback"), is(text, first, "abort"):
		return Command{Verb: Rollback, Chain: chain}
	case is(text, first, "commit"), is(text, first, "end"):
		return Command{Verb: Commit, Chain: chain}
	case is(text, first, "begin"), is(text, first, "start"):
		return Command{Verb: Begin}
	case is(text, first, "prepare") && second == 2 && s.head[2].kind == other:
		return Command{Verb: Detach}
	}
	return Command{}
}

// behind is the token here, or the next one if this is the keyword SAVEPOINT. A savepoint can also have the name SAVEPOINT.
func (s *statement) behind(text string, here int) token {
	if is(text, s.head[here], "savepoint") && s.head[here+1].kind != eof {
		return s.head[here+1]
	}
	return s.head[here]
}

// LongestName is how many bytes of a name PostgreSQL keeps.
const LongestName = 63

// name is a name as the server understands it, empty if only the server knows.
func name(text string, t token) string {
	raw := text[t.start:t.end]
	switch t.kind {
	case word:
		raw = lower(raw)
	case quoted:
		mark := raw[:1]
		raw = strings.TrimSuffix(raw[1:], mark)
		raw = strings.ReplaceAll(raw, mark+mark, mark)
	default:
		return ""
	}
	if len(raw) <= LongestName {
		return raw
	}
	end := LongestName
	for end > 0 && !utf8.RuneStart(raw[end]) {
		end--
	}
	return raw[:end]
}

// is compares a word with one in lower case.
func is(text string, t token, keyword string) bool {
	return t.kind == word && t.end-t.start == len(keyword) && strings.EqualFold(text[t.start:t.end], keyword)
}

// lower changes ASCII letters only, as the server does in a name without quotes.
func lower(s string) string {
	for i := range len(s) {
		if c := s[i]; c >= 'A' && c <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if b[i] >= 'A' && b[i] <= 'Z' {
					b[i] |= 0x20
				}
			}
			return string(b)
		}
	}
	return s
}
