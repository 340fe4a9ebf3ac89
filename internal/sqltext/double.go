package sqltext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MayDouble reports whether a query may return two columns whose names are one for GORM: it writes a name twice, in whatever spelling,
// or a column whose name only the server knows, has a star beside other columns, or a star over more than one table.
func MayDouble(query string) bool {
	if !saysColumns(query) {
		return true
	}
	if with := indexOf(query, "with"); with >= 0 && with < indexOf(query, "select") {
		return mayDouble(query) // the first list is not the one that returns
	}
	if !strings.Contains(query, ",") && !has(query, "join") && !has(query, "using") && (!has(query, "returning") || !has(query, "from")) {
		return false
	}
	if !strings.Contains(query, "*") && !has(query, "join") && !listsTables(query) && !renames(query) {
		return false // one table's columns, each by its name
	}
	return mayDouble(query)
}

func mayDouble(query string) bool {
	r, _ := newReader(query, false, Asked{})
	stars, twice, tables := 0, false, false
	for at := range r.tokens {
		switch {
		case r.isKeyword(at, "select", "returning"):
			list := r.list(at + 1)
			stars, twice = stars+list.stars, twice || list.twice
			tables = tables || r.is(at, "returning") && list.stars > 0 && has(query, "update") && has(query, "from")
		case r.isKeyword(at, "join", "using"):
			tables = true
		case r.isKeyword(at, "from"):
			end := r.find(at+1, len(r.tokens), func(at int) bool { return r.isKeyword(at, listEnds...) || r.isAny(at, "returning") || r.closes(at) })
			tables = tables || r.find(at+1, end, func(at int) bool { return r.sign(at, ",") }) < end
		}
	}
	return twice || stars > 1 || stars == 1 && tables
}

// saysColumns reports whether a text says which columns it returns: not what fetches from a cursor, or calls a procedure.
func saysColumns(query string) bool {
	l := lexer{text: query}
	first := l.next()
	for first.kind == opening {
		first = l.next()
	}
	for _, known := range [...]string{"select", "with", "values", "table", "insert", "update", "delete", "merge", "replace"} {
		if is(query, first, known) {
			return true
		}
	}
	return false
}

// selected is a list of columns.
type selected struct {
	stars int
	twice bool // two of its columns may have one name, or one is a star
}

// list reads the columns behind SELECT or RETURNING.
func (r *reader) list(at int) (l selected) {
	end := r.find(at, len(r.tokens), func(at int) bool {
		return r.isKeyword(at, "from") || r.isKeyword(at, listEnds...) || r.closes(at) || r.tokens[at].kind == semicolon
	})
	if r.isAny(at, "distinct", "all") && at+1 < end && !r.sign(at+1, ",") {
		at++
	}
	names, columns := map[string]bool{}, 0
	for at < end {
		next := r.find(at, end, func(at int) bool { return r.sign(at, ",") })
		columns++
		if r.sign(next-1, "*") {
			l.stars++
			l.twice = true
		} else if name, known := r.columnName(at, next); !known {
			l.twice = true
		} else if name != "" {
			key := strings.ToLower(strings.ReplaceAll(name, "_", "")) // as naming strategies do
			l.twice = l.twice || names[key] || IsGoName(name)
			names[key] = true
		}
		at = next + 1
	}
	l.twice = l.twice && columns > 1
	return l
}

// columnName is the name of a column in a list, as it is written. It is empty for one that no field has, and not known where the server
// takes it from what the column is computed of.
func (r *reader) columnName(at, end int) (name string, known bool) {
	last := end - 1
	of := r.unnamed(at, end)
	call := r.find(at, end, r.opens)
	switch {
	case last < at, r.is(last, "end"): // of a CASE
		return "", false
	case last == at && r.tokens[at].kind == other:
		return "", true
	case r.isName(last) && r.tokens[last].kind != coded && (of == end && r.isPath(at, end) || of == last-1 || of == last && (r.isPath(at, of) || r.closes(of-1) && !r.casts(at, of))):
		return r.written(last), true
	case call > at && call < end && r.ends[call] == last && r.isPath(at, call) && !r.is(call-1, "cast"):
		return r.written(call - 1), true
	}
	return "", false
}

// casts reports whether there is a cast between two places, outside of brackets.
func (r *reader) casts(at, end int) bool {
	return r.find(at, end, func(at int) bool { return r.sign(at, ":") }) < end
}

// written is a name without its quotes. What is not quoted stays as it is: not each server changes it.
func (r *reader) written(at int) string {
	t := r.tokens[at]
	if t.kind == word {
		return r.text[t.start:t.end]
	}
	return name(r.text, t)
}

// IsGoName reports whether a name may be that of a field in a struct, by which GORM finds it too, whatever its column is named.
func IsGoName(name string) bool {
	first, _ := utf8.DecodeRuneInString(name)
	return unicode.IsUpper(first)
}

func (r *reader) closes(at int) bool {
	return at >= 0 && at < len(r.tokens) && r.tokens[at].kind == closing
}

// listsTables reports whether there is a comma behind FROM and its first table. It allocates nothing.
func listsTables(query string) bool {
	from := indexOf(query, "from")
	if from < 0 {
		return false
	}
	tables := query[from:]
	if where := indexOf(tables, "where"); where >= 0 {
		tables = tables[:where]
	}
	return strings.Contains(tables, ",")
}

// renames reports whether a list of columns has more than names between its commas: an alias, an expression or a sub-query. It allocates
// nothing.
func renames(query string) bool {
	at := indexOf(query, "select")
	if at < 0 {
		return true
	}
	list := query[at+len("select"):]
	if from := indexOf(list, "from"); from >= 0 {
		list = list[:from]
	}
	ended := false // a name, by a space
	begun := false
	for i := range len(list) {
		switch c := list[i]; {
		case c == ',':
			begun, ended = false, false
		case c == ' ' || c == '\n' || c == '\t':
			ended = begun
		case ended || !inWord(c) && c != '.' && c != '"' && c != '`':
			return true
		default:
			begun = true
		}
	}
	return false
}

// has looks for a word in lower letters, in whatever letters the query has it.
func has(query, word string) bool { return indexOf(query, word) >= 0 }

func indexOf(query, word string) int {
	for i := range len(query) - len(word) + 1 {
		if query[i]|0x20 == word[0] && strings.EqualFold(query[i:i+len(word)], word) && (i == 0 || !inWord(query[i-1])) {
			return i
		}
	}
	return -1
}

// Reads reports whether a text is one query, in which nothing is written.
func Reads(text string) bool {
	r, _ := newReader(text, false, Asked{})
	if r.unread || !r.opens(0) && !r.isAny(0, "select", "with", "values", "table") {
		return false
	}
	before := token{}
	for at, t := range r.tokens {
		if t.kind == semicolon {
			return at == len(r.tokens)-1
		}
		if isWriting(text, t, before) {
			return false
		}
		before = t
	}
	return true
}
