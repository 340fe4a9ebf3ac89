package sqltext

import (
	"slices"
	"strings"
)

// item is one of FROM: a table, a query, a function, or a join in brackets.
type item struct {
	found
	names []string // which the query calls it
}

func (i item) isOne(names []string) bool {
	return slices.ContainsFunc(i.names, func(name string) bool { return slices.Contains(names, name) })
}

// items reads what FROM has, between its commas and joins.
func (r *reader) items(at, end int, known *withQuery) []item {
	var items []item
	for at < end {
		var one item
		one, at = r.factor(at, end, known)
		items = append(items, one)
		at = 1 + r.find(at, end, func(at int) bool { return r.sign(at, ",") || r.isKeyword(at, "join", "straight_join") })
	}
	return items
}

// aliasEnds are words behind an item that are no name of it.
var aliasEnds = []string{
	"on", "using", "join", "inner", "left", "right", "full", "cross", "natural", "tablesample", "with", "straight_join", "use", "force", "ignore", "partition",
}

// factor reads one item, and where it ends.
func (r *reader) factor(at, end int, known *withQuery) (item, int) {
	for r.is(at, "lateral") || r.is(at, "only") {
		at++
	}
	var one item
	passed := false
	switch {
	case at >= end:
		r.unread = true
		return one, end
	case r.opens(at) && r.isAny(at+1, "select", "with", "values", "table"):
		one.found, passed = r.inBrackets(at, known)
		at = r.ends[at] + 1
	case r.opens(at):
		for _, i := range r.items(at+1, r.ends[at], known) {
			one.found, one.names = one.and(i.found), append(one.names, i.names...)
		}
		at = r.ends[at] + 1
	case r.is(at, "rows") && r.is(at+1, "from") && r.opens(at+2):
		for i := at + 3; i < r.ends[at+2]; i++ {
			if r.isName(i) && r.opens(i+1) && !r.is(i, "as") {
				one.functions = append(one.functions, r.path(i, i+1))
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
	if r.is(at, "as") {
		at++
	}
	if at < end && r.isName(at) && !r.isAny(at, aliasEnds...) {
		one.names = []string{r.name(at)}
		if passed {
			one.subQuery = one.names[0]
		}
		at++
	}
	return one, at
}

// inBrackets is what is found in a query in FROM, and whether the clause of the query around it passes by its rows.
func (r *reader) inBrackets(at int, known *withQuery) (f found, passed bool) {
	f = r.query(at+1, r.ends[at], known, nil)
	switch {
	case r.locks(at+1, r.ends[at]):
		return f.settle(), false
	case !r.asked.Descends && len(f.relations) > 0:
		return found{settled: f.settled, functions: f.functions, with: f.with, subQuery: "(…)"}, true
	}
	return f, false
}

// named reads an item that begins with a name, and where it ends: a table, a WITH query or a function.
func (r *reader) named(at int, known *withQuery) (item, int) {
	start := at
	at++
	for r.sign(at, ".") && r.isName(at+1) {
		at += 2
	}
	one := item{names: []string{r.name(at - 1)}}
	switch {
	case r.tokens[at-1].kind == coded:
		r.unread = true
	case r.opens(at):
		one.functions = []string{r.path(start, at)}
		at = r.ends[at] + 1
		if r.is(at, "with") && r.is(at+1, "ordinality") {
			at += 2
		}
	case at == start+1 && known.named(one.names[0]) != nil:
		one.found = r.ofWith(known.named(one.names[0]))
	default:
		one.relations = []relation{{r.path(start, at), one.names[0]}}
	}
	if r.sign(at, "*") {
		at++
	}
	return one, at
}

// path is a name with those before it, without what may stand between them.
func (r *reader) path(at, end int) string {
	var b strings.Builder
	for _, t := range r.tokens[at:end] {
		b.WriteString(r.text[t.start:t.end])
	}
	return b.String()
}

// with reads the list of WITH, and where the query begins that knows it.
func (r *reader) with(at, end int, known *withQuery) (int, *withQuery) {
	recursive := r.is(at, "recursive")
	if recursive {
		at++
	}
	var own []*withQuery
	for r.isName(at) {
		body := r.find(at+1, end, func(at int) bool { return r.opens(at) && (r.is(at-1, "as") || r.is(at-1, "materialized")) })
		if body == end {
			break
		}
		w := &withQuery{name: r.name(at), at: body + 1, end: r.ends[body], outer: known, knows: known}
		known, own = w, append(own, w)
		at = r.find(r.ends[body]+1, end, func(at int) bool { // behind it may stand SEARCH and CYCLE, which have commas too
			return r.opens(at) || r.isAny(at, "select", "table", "values", "insert", "update", "delete", "merge") ||
				r.sign(at, ",") && r.isName(at+1) && (r.opens(at+2) || r.is(at+2, "as"))
		})
		if !r.sign(at, ",") {
			break
		}
		at++
	}
	for _, w := range own {
		if recursive {
			w.knows = known
		}
	}
	r.unread = r.unread || len(own) == 0
	return at, known
}

func (w *withQuery) named(name string) *withQuery {
	for ; w != nil; w = w.outer {
		if w.name == name {
			return w
		}
	}
	return nil
}

// ofWith is what is found in a WITH query: its rows are locked only if it locks them itself.
func (r *reader) ofWith(w *withQuery) found {
	if w.read {
		return w.found
	}
	w.read = true // it may read itself
	switch f := r.bodyOf(w); {
	case r.locks(w.at, w.end):
		w.found = f.settle()
	case len(f.relations) > 0:
		w.found = found{settled: f.settled, functions: f.functions, with: w.name}
	default:
		w.found = f
	}
	return w.found
}

func (r *reader) bodyOf(w *withQuery) found {
	if r.isAny(w.at, "insert", "update", "delete", "merge") {
		return found{with: w.name}
	}
	return r.query(w.at, w.end, w.knows, nil)
}

// locks reports whether a query locks all that it reads at least as strongly as was asked.
func (r *reader) locks(at, end int) bool {
	at = r.find(at, end, func(at int) bool { return r.is(at, "for") || r.is(at, "lock") && r.is(at+1, "in") })
	if at == end {
		return false
	}
	strength, behind := 0, at+2
	switch {
	case r.is(at, "lock"):
		strength, behind = 3, at+4 // LOCK IN SHARE MODE
	case r.is(at+1, "update"):
		strength = 1
	case r.is(at+1, "no") && r.is(at+2, "key") && r.is(at+3, "update"):
		strength, behind = 2, at+4
	case r.is(at+1, "share"):
		strength = 3
	case r.is(at+1, "key") && r.is(at+2, "share"):
		strength, behind = 4, at+3
	}
	return strength > 0 && strength <= r.asked.Strength && !r.is(behind, "of")
}
