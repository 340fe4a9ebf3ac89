package sqltext

import "slices"

// Sources are the names in a text that the columns which it returns may come from, as the server stores them. If all columns are written to
// be of one table, they are those of the columns and of that table. Else they are all names of the text, be they of tables, columns or
// functions. Only columns count that come back under a wanted name; where wanted is nil, all do. A name behind a dot has the dot before it.
// Told says that nothing else can give the columns.
func Sources(text string, wanted func(name string) bool) (names []string, told bool) {
	r, l := newReader(text, false)
	if r.unread || l.unterminated || l.backslash || !r.opens(0) && !r.isAny(0, "select", "with", "values", "insert", "update", "delete", "merge", "replace") {
		return nil, false // FETCH and EXECUTE say nothing of what they give
	}
	own := r.ownColumns(wanted)
	seen := map[string]bool{}
	for at := range r.all {
		if kind := r.kind(at); kind == coded || kind == semicolon && at < len(r.all)-1 {
			return nil, false
		}
		if own != nil && !own[at] || !r.isName(at) || r.isKeyword(at, reserved...) {
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
	"group", "order", "limit", "returning", "with", "into",
}

// ownColumns are the places of the columns that are wanted and of the first table of FROM, if they are all its own: it is the only one, or
// they are written with its name. It is nil for any other text.
func (r reader) ownColumns(wanted func(string) bool) map[int]bool {
	if !r.is(0, "select") || r.hasOuter("union", "intersect", "except") {
		return nil
	}
	from, has := r.columnsEnd(1, len(r.all))
	if !has {
		return nil
	}
	var tables []string // of each column, empty where none is written
	places := map[int]bool{}
	for _, c := range r.columns(r.behindDistinct(1), from) {
		if name, known := c.called(); known && wanted != nil && !wanted(name) && c.column != "*" {
			continue
		}
		if !c.isNamed {
			return nil
		}
		tables = append(tables, c.table)
		for at := c.at; at < c.end; at++ {
			places[at] = true
		}
	}
	at := from + 1
	if r.is(at, "only") {
		at++
	}
	if !r.isName(at) {
		return nil
	}
	end := r.pathEnd(at)
	for ; at < end; at++ {
		places[at] = true
	}
	name, last := r.name(end-1), r.fromEnd(end, len(r.all))
	names, behind := r.alias(end, last)
	if len(names) > 0 {
		name = names[0]
	}
	switch {
	case behind == last, r.kind(behind) == semicolon:
		return places
	case !r.sign(behind, ",") && !r.isAny(behind, aliasEnds...), slices.ContainsFunc(tables, func(table string) bool { return table != name }):
		return nil
	}
	return places
}
