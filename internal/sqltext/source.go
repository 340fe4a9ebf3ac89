package sqltext

import "slices"

// Sources are the names in a text that the columns it returns may come from, as the server stores them: of the one table that the columns
// are written to be of, else all of the text, whether they are of tables, columns or functions. A name that stands behind a dot has it
// before it. They are told if all are known.
func Sources(text string) (names []string, told bool) {
	r, l := newReader(text, false)
	if r.unread || l.unterminated || l.backslash || !r.opens(0) && !r.isAny(0, "select", "with", "values", "insert", "update", "delete", "merge", "replace") {
		return nil, false // FETCH and EXECUTE say nothing of what they give
	}
	end := r.ownColumns()
	if end == 0 {
		end = len(r.all)
	}
	seen := map[string]bool{}
	for at := range r.all {
		if kind := r.kind(at); kind == coded || kind == semicolon && at < len(r.all)-1 {
			return nil, false
		}
		if at >= end || !r.isName(at) || r.isKeyword(at, reserved...) {
			continue
		}
		name := r.name(at)
		if r.sign(at-1, ".") {
			name = "." + name
		}
		if !seen[name] {
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
func (r reader) ownColumns() int {
	if !r.is(0, "select") || r.hasOuter("union", "intersect", "except") {
		return 0
	}
	from, has := r.columnsEnd(1, len(r.all))
	if !has {
		return 0
	}
	var tables []string // of each column, empty where none is written
	for _, c := range r.columns(r.behindDistinct(1), from) {
		if !c.isNamed {
			return 0
		}
		tables = append(tables, c.table)
	}
	at := from + 1
	if r.is(at, "only") {
		at++
	}
	if !r.isName(at) {
		return 0
	}
	end := r.pathEnd(at)
	name, last := r.name(end-1), r.fromEnd(end, len(r.all))
	names, behind := r.alias(end, last)
	if len(names) > 0 {
		name = names[0]
	}
	switch {
	case behind == last, r.kind(behind) == semicolon:
		return end
	case !r.sign(behind, ",") && !r.isAny(behind, aliasEnds...), slices.ContainsFunc(tables, func(table string) bool { return table != name }):
		return 0
	}
	return end
}
