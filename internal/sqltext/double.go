package sqltext

import "strings"

// MayDouble reports whether a query may return two columns of one name: it writes a name twice, has a star beside other columns, or a
// star over more than one table.
func MayDouble(query string) bool {
	if !strings.Contains(query, ",") && !has(query, "join") && !has(query, "using") && (!has(query, "returning") || !has(query, "from")) {
		return false
	}
	if !strings.Contains(query, "*") && !has(query, "join") && !listsTables(query) && !renames(query) {
		return false // one table's columns, each by its name
	}
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

// selected is a list of columns.
type selected struct {
	stars int
	twice bool // two of its columns have one name, or one is a star
}

// list reads the columns behind SELECT or RETURNING.
func (r *reader) list(at int) (l selected) {
	end := r.find(at, len(r.tokens), func(at int) bool {
		return r.isKeyword(at, "from") || r.isKeyword(at, listEnds...) || r.closes(at) || r.tokens[at].kind == semicolon
	})
	names := map[string]bool{}
	for at < end {
		next := r.find(at, end, func(at int) bool { return r.sign(at, ",") })
		switch last := next - 1; {
		case last < at:
		case r.sign(last, "*"):
			l.stars++
			l.twice = l.twice || at > 0 && r.sign(at-1, ",") || next < end
		case r.is(last, "end") && r.has(at, next, "case"), r.closes(last) && r.has(at, next, "select", "cast"):
			l.twice = true // it has the name of a column in it
		case r.isName(last):
			l.twice = l.twice || names[r.name(last)]
			names[r.name(last)] = true
		}
		at = next + 1
	}
	return l
}

// has reports whether one of these keywords is between two places.
func (r *reader) has(at, end int, keywords ...string) bool {
	for ; at < end; at++ {
		if r.isAny(at, keywords...) {
			return true
		}
	}
	return false
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
