package sqltext

// reader finds the parts of a query.
type reader struct{ *tokens }

func newReader(text string, escapes bool) (reader, lexer) {
	ts, l := newTokens(text, escapes)
	return reader{ts}, l
}

// isQuery reports whether a bracket contains a query, which may begin with another bracket. A join of queries is not a query.
func (r reader) isQuery(at int) bool {
	switch {
	case !r.opens(at):
		return false
	case r.isQuery(at + 1):
		behind := r.ends[at+1] + 1
		return behind == r.ends[at] || r.isAny(behind, listEnds...)
	}
	return r.isAny(at+1, "select", "with", "values", "table")
}

// behindDistinct is where the list of columns begins, after DISTINCT or ALL.
func (r reader) behindDistinct(at int) int {
	switch {
	case r.is(at, "distinct") && r.is(at+1, "on") && r.opens(at+2):
		return r.ends[at+2] + 1
	case r.isAny(at, "distinct", "all"):
		return at + 1
	}
	return at
}

// listEnds are the words that can follow FROM and its tables.
var listEnds = []string{"where", "group", "having", "window", "union", "intersect", "except", "order", "limit", "offset", "fetch", "for"}

// isFrom reports whether FROM begins here. The word in IS DISTINCT FROM does not count.
func (r reader) isFrom(at int) bool {
	return r.isKeyword(at, "from") && (!r.is(at-1, "distinct") || !r.isAny(at-2, "is", "not"))
}

// columnsEnd is the end of the list of columns that begins here, and whether FROM follows.
func (r reader) columnsEnd(at, end int) (from int, has bool) {
	from = r.find(at, end, func(at int) bool { return r.isFrom(at) || r.isKeyword(at, listEnds...) })
	return from, from < end && r.isFrom(from)
}

// fromEnd is where FROM ends.
func (r reader) fromEnd(at, end int) int {
	return r.find(at, end, func(at int) bool { return r.isKeyword(at, listEnds...) || r.is(at, "lock") && r.is(at+1, "in") })
}
