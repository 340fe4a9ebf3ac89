package sqltext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MayDouble reports whether a query may return two columns that GORM takes for one. It may if it has the same name twice, in any spelling,
// a column whose name only the server knows, a star beside other columns, or a star over more than one table.
func MayDouble(query string) bool {
	if !saysColumns(query) {
		return true
	}
	if with := indexOf(query, "with"); with >= 0 && with < indexOf(query, "select") {
		return mayDouble(query) // the first list belongs to WITH, not to what is returned
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
	r, _ := newReader(query, false)
	stars, twice, tables := 0, false, false
	for at := range r.all {
		switch {
		case r.isKeyword(at, "select", "returning"):
			of, doubled := r.doubles(at + 1)
			stars, twice = stars+of, twice || doubled
			tables = tables || r.is(at, "returning") && of > 0 && has(query, "update") && has(query, "from")
		case r.isKeyword(at, "join", "using"):
			tables = true
		case r.isFrom(at):
			end := r.find(at+1, len(r.all), func(at int) bool { return r.isKeyword(at, listEnds...) || r.isAny(at, "returning") || r.closes(at) })
			tables = tables || r.comma(at+1, end) < end
		}
	}
	return twice || stars > 1 || stars == 1 && tables
}

// saysColumns reports whether a text says which columns it returns. FETCH and CALL do not.
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

// doubles counts the stars after SELECT or RETURNING, and reports whether two of the columns there may have one name. A star beside another
// column may.
func (r reader) doubles(at int) (stars int, twice bool) {
	end := r.find(at, len(r.all), func(at int) bool { return r.closes(at) || r.kind(at) == semicolon })
	end, _ = r.columnsEnd(at, end)
	columns, names := r.columns(r.behindDistinct(at), end), map[string]bool{}
	for _, c := range columns {
		if c.sign(c.end-1, "*") {
			stars++
		} else if name, known := c.called(); !known {
			twice = true
		} else if name != "" {
			key := strings.ToLower(strings.ReplaceAll(name, "_", "")) // as naming strategies do
			twice = twice || names[key] || IsGoName(name)
			names[key] = true
		}
	}
	return stars, (twice || stars > 0) && len(columns) > 1
}

// IsGoName reports whether a name can be the name of a struct's field. GORM finds a field by that too, not only by its column.
func IsGoName(name string) bool {
	first, _ := utf8.DecodeRuneInString(name)
	return unicode.IsUpper(first)
}

// listsTables reports whether there is a comma between FROM and WHERE. It allocates nothing.
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

// renames reports whether a list of columns has anything but plain names: an alias, an expression or a sub-query. It allocates nothing.
func renames(query string) bool {
	at := indexOf(query, "select")
	if at < 0 {
		return true
	}
	list := query[at+len("select"):]
	if from := indexOf(list, "from"); from >= 0 {
		list = list[:from]
	}
	ended := false // a space has ended a name
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

// has looks for a word, given in lower case, in a query in any case.
func has(query, word string) bool { return indexOf(query, word) >= 0 }

func indexOf(query, word string) int {
	for i := range len(query) - len(word) + 1 {
		if query[i]|0x20 == word[0] && strings.EqualFold(query[i:i+len(word)], word) && (i == 0 || !inWord(query[i-1])) {
			return i
		}
	}
	return -1
}

// Reads reports whether a text is a single query that writes nothing.
func Reads(text string) bool {
	r, _ := newReader(text, false)
	if r.unread || !r.opens(0) && !r.isAny(0, "select", "with", "values", "table") {
		return false
	}
	before := token{}
	for at, t := range r.all {
		if t.kind == semicolon {
			return at == len(r.all)-1
		}
		if isWriting(text, t, before) {
			return false
		}
		before = t
	}
	return true
}
