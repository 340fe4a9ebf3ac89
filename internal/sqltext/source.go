package sqltext

import "strings"

// Sources are the names of what the columns of a query come from, those that are wanted by the names they come back under, or all: tables,
// views, and whatever else has a name. They are told if nothing else can give these columns: no function, no cursor, nothing that
// is not understood.
func Sources(query string, wanted func(name string) bool) (names []string, told bool) {
	r, l := newReader(query, false, Asked{})
	s := &sources{reader: r, told: !r.unread && !l.unterminated && !l.backslash}
	for at := range r.tokens {
		s.told = s.told && r.tokens[at].kind != coded && r.tokens[at].kind != semicolon
	}
	if s.told {
		s.query(0, len(r.tokens), nil, wanted)
	}
	return s.names, s.told && !r.unread
}

// sources follows columns to where they come from.
type sources struct {
	*reader
	names []string
	told  bool
	depth int
}

// source is one of FROM.
type source struct {
	names []string // which the query calls it
	read  func(wanted func(string) bool)
}

func (s *sources) query(at, end int, known *withQuery, wanted func(string) bool) {
	if s.depth++; s.depth > 32 { // a query of WITH reads itself
		return
	}
	defer func() { s.depth-- }()
	if s.is(at, "with") {
		at, known = s.with(at+1, end, known)
	}
	for at < end {
		next := s.find(at, end, func(at int) bool { return s.isKeyword(at, "union", "intersect", "except") })
		s.branch(at, next, known, wanted)
		wanted = nil // the columns of the others are called as those of the first
		if at = next + 1; s.isAny(at, "all", "distinct") {
			at++
		}
	}
}

// branch is a query without UNION.
func (s *sources) branch(at, end int, known *withQuery, wanted func(string) bool) {
	switch {
	case at < end && s.opens(at):
		s.query(at+1, s.ends[at], known, wanted)
		return
	case s.is(at, "values"):
		return
	case !s.is(at, "select"):
		s.told = false
		return
	}
	from := s.find(at+1, end, func(at int) bool {
		return s.isKeyword(at, "from") && !s.isDistinctFrom(at) || s.isKeyword(at, listEnds...)
	})
	var items []source
	if s.is(from, "from") && from < end {
		items = s.from(from+1, s.listEnd(from+1, end), known)
	}
	if at++; s.is(at, "distinct") && s.is(at+1, "on") && s.opens(at+2) {
		at = s.ends[at+2] + 1
	} else if s.isAny(at, "distinct", "all") {
		at++
	}
	for at < from {
		next := s.find(at, from, func(at int) bool { return s.sign(at, ",") })
		s.column(at, next, items, wanted)
		at = next + 1
	}
}

func (r *reader) isDistinctFrom(at int) bool {
	return r.is(at-1, "distinct") && (r.is(at-2, "is") || r.is(at-2, "not"))
}

// column follows one column of a list, or a star.
func (s *sources) column(at, end int, items []source, wanted func(string) bool) {
	name, known := s.columnName(at, end)
	of := s.unnamed(at, end)
	table, column := "", ""
	if of == end || s.isPath(at, of) {
		table, column = s.columnOf(at, of)
	}
	switch {
	case column == "*":
	case known && wanted != nil && !wanted(name):
		return
	case column != "":
		wanted = func(name string) bool { return strings.EqualFold(name, column) }
	default:
		s.told = s.told && !s.selects(at, end)
		wanted = nil
	}
	for _, item := range items {
		if table == "" || len(item.names) == 0 || contains(item.names, table) {
			item.read(wanted)
		}
	}
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

// selects reports whether there is a query between two places, or in the brackets there.
func (r *reader) selects(at, end int) bool {
	for ; at < end; at++ {
		if r.isAny(at, "select", "values", "table") {
			return true
		}
	}
	return false
}

// from reads what FROM has.
func (s *sources) from(at, end int, known *withQuery) (items []source) {
	for at < end {
		for s.isAny(at, "lateral", "only") {
			at++
		}
		var one source
		switch {
		case s.opens(at) && s.isAny(at+1, "select", "with", "values", "table") || s.opens(at) && s.opens(at+1) && s.selects(at, at+3):
			start := at + 1
			one.read = func(wanted func(string) bool) { s.query(start, s.ends[start-1], known, wanted) }
			at = s.ends[at] + 1
		case s.opens(at):
			within := s.from(at+1, s.ends[at], known)
			one.read = func(wanted func(string) bool) {
				for _, i := range within {
					i.read(wanted)
				}
			}
			for _, i := range within {
				one.names = append(one.names, i.names...)
			}
			at = s.ends[at] + 1
		case s.isName(at):
			one, at = s.relation(at, known)
		default:
			s.told = false
			return items
		}
		if s.is(at, "as") {
			at++
		}
		if at < end && s.isName(at) && !s.isAny(at, aliasEnds...) {
			one.names = []string{s.name(at)}
			if at++; s.opens(at) { // other names for its columns
				read := one.read
				one.read = func(func(string) bool) { read(nil) }
			}
		}
		items = append(items, one)
		at = 1 + s.find(at, end, func(at int) bool { return s.sign(at, ",") || s.isKeyword(at, "join", "straight_join") })
	}
	return items
}

// relation reads an item that begins with a name, and where it ends.
func (s *sources) relation(at int, known *withQuery) (source, int) {
	start := at
	for at++; s.sign(at, ".") && s.isName(at+1); {
		at += 2
	}
	one := source{names: []string{s.name(at - 1)}}
	w := known.named(one.names[0])
	text := s.path(start, at)
	switch {
	case s.opens(at) || s.is(at-1, "rows") && s.is(at, "from"):
		one.read = func(func(string) bool) { s.told = false }
		if s.opens(at) {
			at = s.ends[at] + 1
		}
	case w != nil && at == start+1:
		one.read = func(wanted func(string) bool) {
			if s.isAny(w.at, "insert", "update", "delete", "merge") {
				s.told = false
				return
			}
			s.query(w.at, w.end, w.knows, wanted)
		}
	default:
		one.read = func(func(string) bool) { s.names = append(s.names, text) }
	}
	if s.sign(at, "*") {
		at++
	}
	return one, at
}

// level is the end of the bracket that a place is in, or of the text.
func (r *reader) level(at int) int {
	level := len(r.tokens)
	for open, end := range r.ends {
		if open < at && at < end && r.opens(open) {
			level = end
		}
	}
	return level
}

// ReadsInto reports whether the only column that a text returns may hold what a column of this name does: one of its lists has it.
func ReadsInto(text, column string) bool {
	r, _ := newReader(text, false, Asked{})
	start, main, within := 0, -1, false
	for r.opens(start) {
		start++
	}
	for at := range r.tokens {
		if !r.isKeyword(at, "select", "returning") {
			continue
		}
		end := r.level(at)
		if from := r.find(at+1, end, func(at int) bool { return r.isKeyword(at, "from") || r.isKeyword(at, listEnds...) }); from < end {
			end = from
		}
		if r.level(at) == r.level(start) {
			main = at + 1
			if r.is(main, "count") && r.opens(main+1) || r.find(main, end, func(at int) bool { return r.sign(at, ",") }) < end {
				return false
			}
		}
		within = within || r.mayBe(at+1, end, column)
	}
	return main >= 0 && within
}

// mayBe reports whether a list may give what the column holds: it stands there by itself, under another name or in an expression that
// does not count or choose.
func (r *reader) mayBe(at, end int, column string) bool {
	for ; at < end; at++ {
		switch {
		case r.isAny(at, "case", "count", "select", "string_agg", "array_agg", "json_agg", "jsonb_agg"):
			return false
		case r.isName(at) && strings.EqualFold(r.name(at), column):
			return true
		}
	}
	return false
}

// TableName is a name as a text has it, taken apart. It is none if it has more parts.
func TableName(text string) (schema, table string, ok bool) {
	r, l := newReader(text, false, Asked{})
	if l.unterminated {
		return "", "", false
	}
	switch n := len(r.tokens); {
	case n == 1 && r.isName(0):
		return "", r.name(0), true
	case n == 3 && r.isName(0) && r.sign(1, ".") && r.isName(2):
		return r.name(0), r.name(2), true
	}
	return "", "", false
}

// Target is the name of what a text writes to, if it begins as a write of rows.
func Target(text string) (name string, writes bool) {
	r, _ := newReader(text, false, Asked{})
	if !r.isAny(0, "insert", "update", "delete", "merge", "replace") {
		return "", false
	}
	start := 1
	for r.isAny(start, "into", "from", "only") {
		start++
	}
	end := start + 1
	for r.sign(end, ".") && r.isName(end+1) {
		end += 2
	}
	if !r.isName(start) {
		return "", true
	}
	return r.path(start, end), true
}
