package sqltext

// withQuery is a query of WITH. What follows it in the text can use its name.
type withQuery struct {
	name    string
	at, end int
	writes  bool       // it writes rows
	outer   *withQuery // the next one that is visible where this one is
	knows   *withQuery // the first one that it can use itself
	read    bool       // found is known, or is being determined
	found   found
}

// with reads the list of a WITH. It returns where the query after the list begins, and the WITH queries that this query can use.
func (r reader) with(at, end int, known *withQuery) (int, *withQuery) {
	if !r.is(at, "with") {
		return at, known
	}
	at++
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
		w.writes = r.isAny(w.at, "insert", "update", "delete", "merge")
		known, own = w, append(own, w)
		at = r.find(r.ends[body]+1, end, func(at int) bool { // SEARCH and CYCLE may follow, which have commas too
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
