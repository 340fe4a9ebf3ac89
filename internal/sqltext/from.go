package sqltext

import "slices"

// item is one of FROM: a table, a query, a function, or a join in brackets.
type item struct {
	found
	names []string // which the query calls it
}

func (i item) isOne(names []string) bool {
	return slices.ContainsFunc(i.names, func(name string) bool { return slices.Contains(names, name) })
}

// items reads what FROM has, between its commas and joins.
func (r locking) items(at, end int, known *withQuery) []item {
	var items []item
	for at < end {
		var one item
		one, at = r.factor(at, end, known)
		items = append(items, one)
		at = 1 + r.itemEnd(at, end)
	}
	return items
}

// factor reads one item, and where it ends.
func (r locking) factor(at, end int, known *withQuery) (item, int) {
	for r.isAny(at, "lateral", "only") {
		at++
	}
	var one item
	passed := false
	switch {
	case at >= end:
		r.unread = true
		return one, end
	case r.isQuery(at):
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
	names, at := r.alias(at, end)
	if len(names) > 0 {
		one.names = names
		if passed {
			one.subQuery = names[0]
		}
	}
	return one, at
}

// inBrackets is what is found in a query in FROM, and whether the clause of the query around it passes by its rows.
func (r locking) inBrackets(at int, known *withQuery) (f found, passed bool) {
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
func (r locking) named(at int, known *withQuery) (item, int) {
	start, at := at, r.pathEnd(at)
	one := item{names: []string{r.name(at - 1)}}
	switch {
	case r.kind(at-1) == coded:
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

// ofWith is what is found in a WITH query: its rows are locked only if it locks them itself.
func (r locking) ofWith(w *withQuery) found {
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

func (r locking) bodyOf(w *withQuery) found {
	if w.writes {
		return found{with: w.name}
	}
	return r.query(w.at, w.end, w.knows, nil)
}

// locks reports whether a query locks all that it reads at least as strongly as was asked.
func (r locking) locks(at, end int) bool {
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
