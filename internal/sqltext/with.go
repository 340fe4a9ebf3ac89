package sqltext

// withQuery is a query of WITH, whose name is known to what stands behind it.
type withQuery struct {
	name    string
	at, end int
	writes  bool       // it is no query, but writes rows
	outer   *withQuery // known beside it
	knows   *withQuery // what it knows itself
	read    bool       // what is found in it is known, or is just being looked for
	found   found
}

// with reads the list of a WITH, and where the query begins that knows it.
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
