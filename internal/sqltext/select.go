package sqltext

// reader finds the parts of a query.
type reader struct{ *tokens }

func newReader(text string, escapes bool) (reader, lexer) {
	ts, l := newTokens(text, escapes)
	return reader{ts}, l
}

// isQuery reports whether a bracket opens with a query in it.
func (r reader) isQuery(at int) bool {
	return r.opens(at) && r.isAny(at+1, "select", "with", "values", "table")
}

// behindDistinct is where the list of columns begins.
func (r reader) behindDistinct(at int) int {
	switch {
	case r.is(at, "distinct") && r.is(at+1, "on") && r.opens(at+2):
		return r.ends[at+2] + 1
	case r.isAny(at, "distinct", "all"):
		return at + 1
	}
	return at
}

// listEnds are the words behind FROM and its tables.
var listEnds = []string{"where", "group", "having", "window", "union", "intersect", "except", "order", "limit", "offset", "fetch", "for"}

// columnsEnd is where the list of columns of a SELECT ends, and whether FROM stands there.
func (r reader) columnsEnd(at, end int) (from int, has bool) {
	from = r.find(at, end, func(at int) bool {
		isDistinct := r.is(at-1, "distinct") && (r.is(at-2, "is") || r.is(at-2, "not"))
		return r.isKeyword(at, "from") && !isDistinct || r.isKeyword(at, listEnds...)
	})
	return from, from < end && r.is(from, "from")
}

// fromEnd is where FROM ends.
func (r reader) fromEnd(at, end int) int {
	return r.find(at, end, func(at int) bool { return r.isKeyword(at, listEnds...) || r.is(at, "lock") && r.is(at+1, "in") })
}

// itemEnd is what stands between an item of FROM and the next one, or end.
func (r reader) itemEnd(at, end int) int {
	return r.find(at, end, func(at int) bool { return r.sign(at, ",") || r.isKeyword(at, "join", "straight_join") })
}

// aliasEnds are words behind an item of FROM that are no name of it.
var aliasEnds = []string{
	"on", "using", "join", "inner", "left", "right", "full", "cross", "natural", "tablesample", "with", "straight_join", "use", "force", "ignore", "partition",
}

// alias is the name that an item of FROM gets, none if it gets none, and what stands behind that.
func (r reader) alias(at, end int) (names []string, behind int) {
	if r.is(at, "as") {
		at++
	}
	if at < end && r.isName(at) && !r.isAny(at, aliasEnds...) {
		return []string{r.name(at)}, at + 1
	}
	return nil, at
}
