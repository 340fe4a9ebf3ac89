package sqltext

import "slices"

// item is one of FROM: a table, a query, a function, or a join in brackets.
type item struct {
	found              // what is found in it, if it is a table or a function
	names   []string   // its names in the query
	renames bool       // the query gives its columns other names
	query   *withQuery // if it is a query, or names a query of WITH
	joined  []item     // if it is a join in brackets: the items in them
	queries []item     // if it is a function: the queries among its arguments
}

func (i item) isOne(names []string) bool {
	return slices.ContainsFunc(i.names, func(name string) bool { return slices.Contains(names, name) })
}

// items reads the items of FROM, which commas and joins separate.
func (r reader) items(at, end int, known *withQuery) (items []item) {
	for at < end {
		var one item
		one, at = r.item(at, end, known)
		items = append(items, one)
		at = 1 + r.itemEnd(at, end)
	}
	return items
}

// item reads one item, and where it ends.
func (r reader) item(at, end int, known *withQuery) (one item, behind int) {
	for r.isAny(at, "lateral", "only") {
		at++
	}
	switch {
	case at >= end:
		r.unread = true
		return one, end
	case r.isQuery(at):
		one.query = &withQuery{at: at + 1, end: r.ends[at], knows: known}
		at = r.ends[at] + 1
	case r.opens(at):
		one.joined = r.items(at+1, r.ends[at], known)
		for _, i := range one.joined {
			one.names = append(one.names, i.names...)
		}
		at = r.ends[at] + 1
	case r.is(at, "rows") && r.is(at+1, "from") && r.opens(at+2):
		for i := at + 3; i < r.ends[at+2]; i++ {
			if r.isName(i) && r.opens(i+1) && !r.is(i, "as") {
				one.functions = append(one.functions, r.path(i, i+1))
				one.queries = append(one.queries, r.queriesIn(i+1, known)...)
				i = r.ends[i+1]
			}
		}
		at = r.ends[at+2] + 1
	case r.isName(at):
		one, at = r.named(at, known)
	default:
		r.unread = true
		return one, end
	}
	if names, behind := r.alias(at, end); len(names) > 0 {
		one.names, one.renames, at = names, r.opens(behind), behind
	}
	return one, at
}

// named reads an item that begins with a name, and where it ends: a table, a WITH query or a function.
func (r reader) named(at int, known *withQuery) (item, int) {
	start, at := at, r.pathEnd(at)
	one := item{names: []string{r.name(at - 1)}}
	with := known.named(one.names[0])
	switch {
	case r.kind(at-1) == coded:
		r.unread = true
	case r.opens(at):
		one.functions = []string{r.path(start, at)}
		one.queries = r.queriesIn(at, known)
		at = r.ends[at] + 1
		if r.is(at, "with") && r.is(at+1, "ordinality") {
			at += 2
		}
	case at == start+1 && with != nil:
		one.query = with
	default:
		one.relations = []relation{{r.path(start, at), one.names[0]}}
	}
	if r.sign(at, "*") {
		at++
	}
	return one, at
}

// queriesIn are the queries among the arguments of a function. The function may return their rows.
func (r reader) queriesIn(at int, known *withQuery) (queries []item) {
	end := r.ends[at]
	for i := at; i < end; i++ {
		if r.isQuery(i) {
			queries = append(queries, item{names: []string{r.name(at-1) + "(…)"}, query: &withQuery{at: i + 1, end: r.ends[i], knows: known}})
			i = r.ends[i]
		}
	}
	return queries
}

// itemEnd is the place of the comma or JOIN before the next item of FROM, or end.
func (r reader) itemEnd(at, end int) int {
	return r.find(at, end, func(at int) bool { return r.sign(at, ",") || r.isKeyword(at, "join", "straight_join") })
}

// aliasEnds are words that can follow an item of FROM and are not its alias.
var aliasEnds = []string{
	"on", "using", "join", "inner", "left", "right", "full", "cross", "natural", "tablesample", "with", "straight_join", "use", "force", "ignore", "partition",
}

// alias is the alias of an item of FROM, if it has one, and the place after the alias.
func (r reader) alias(at, end int) (names []string, behind int) {
	if r.is(at, "as") {
		at++
	}
	if at < end && r.isName(at) && !r.isAny(at, aliasEnds...) {
		return []string{r.name(at)}, at + 1
	}
	return nil, at
}
