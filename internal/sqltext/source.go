package sqltext

import "slices"

// Sources are the names from which the returned columns of a text may come, as the server stores them. If the text says that all these columns
// are of one table, they are the names of the columns and of that table. Otherwise they are all names in the text: tables, columns and
// functions. Only columns that come back under a wanted name count; if wanted is nil, all do. A name after a dot keeps the dot before it.
// told says that the columns can come from nothing else.
func Sources(text string, wanted func(name string) bool) (names []string, told bool) {
	r, l := newReader(text, false)
	if r.unread || l.unterminated || l.backslash || !r.opens(0) && !r.isAny(0, "select", "with", "values", "insert", "update", "delete", "merge", "replace") {
		return nil, false // FETCH and EXECUTE do not say what they return
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

// reserved are frequent words of queries that cannot be names without quotes.
var reserved = []string{
	"select", "distinct", "all", "from", "where", "and", "or", "not", "as", "in", "is", "null", "on", "join", "left", "inner",
	"group", "order", "limit", "returning", "with", "into",
}

// ownColumns are the places of the wanted columns and of the first table of FROM, if all these columns belong to that table: it is the only
// one, or its name is before each of them. It is nil for any other text.
func (r reader) ownColumns(wanted func(string) bool) map[int]bool {
	if !r.is(0, "select") || r.hasOuter("union", "intersect", "except") {
		return nil
	}
	from, has := r.columnsEnd(1, len(r.all))
	if !has {
		return nil
	}
	var tables []string // the table before each column, empty if there is none
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
