package sqltext

import "slices"

// Sources are the names in a text that the columns it returns may come from, as the server stores them: of the one table that the columns
// are written to be of, else all of the text, whether they are of tables, columns or functions. They are told if all are known.
func Sources(text string) (names []string, told bool) {
	r, l := newReader(text, false, Asked{})
	if r.unread || l.unterminated || l.backslash || !r.opens(0) && !r.isAny(0, "select", "with", "values", "insert", "update", "delete", "merge", "replace") {
		return nil, false // FETCH and EXECUTE say nothing of what they give
	}
	end := r.ownColumns()
	if end == 0 {
		end = len(r.tokens)
	}
	seen := map[string]bool{}
	for at := range r.tokens {
		if kind := r.tokens[at].kind; kind == coded || kind == semicolon && at < len(r.tokens)-1 {
			return nil, false
		}
		if at >= end || !r.isName(at) || r.isKeyword(at, reserved...) {
			continue
		}
		if name := r.name(at); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, true
}

// reserved are words of most queries, which no name is without quotes.
var reserved = []string{
	"select", "distinct", "all", "from", "where", "and", "or", "not", "as", "in", "is", "null", "on", "join", "left", "inner",
	"group", "order", "by", "limit", "returning", "with", "into", "set",
}

// ownColumns is where the first table of FROM ends in a query whose columns are all its own: it is the only one, or they are written with
// its name. It is 0 for any other text.
func (r *reader) ownColumns() int {
	if !r.is(0, "select") || r.hasOuter("union", "intersect", "except") {
		return 0
	}
	at := 1
	if r.isAny(at, "distinct", "all") {
		at++
	}
	var tables []string // of each column, empty where none is written
	for {
		end := r.find(at, len(r.tokens), func(at int) bool { return r.sign(at, ",") || r.isKeyword(at, "from") })
		of := r.unnamed(at, end)
		table, column := r.columnOf(at, of)
		if end == len(r.tokens) || column == "" {
			return 0
		}
		tables = append(tables, table)
		if at = end + 1; !r.sign(end, ",") {
			break
		}
	}
	if r.is(at, "only") {
		at++
	}
	if !r.isName(at) {
		return 0
	}
	at++
	for r.sign(at, ".") && r.isName(at+1) {
		at += 2
	}
	name, end := r.name(at-1), at
	if r.is(at, "as") {
		at++
	}
	joins := []string{"join", "inner", "left", "right", "full", "cross", "natural", "straight_join"}
	if r.isName(at) && !r.isKeyword(at, joins...) && !r.isKeyword(at, listEnds...) {
		name = r.name(at)
		at++
	}
	switch {
	case at == len(r.tokens), r.tokens[at].kind == semicolon, r.isKeyword(at, listEnds...):
		return end
	case !r.sign(at, ",") && !r.isKeyword(at, joins...), slices.ContainsFunc(tables, func(table string) bool { return table != name }):
		return 0
	}
	return end
}
