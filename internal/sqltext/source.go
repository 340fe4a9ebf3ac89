package sqltext

import "strings"

// Sources are the names of what a query reads its rows from, as its text has them: tables, views, and what else has a name. They are
// told if nothing else can give it rows: no function, no cursor, nothing that is not understood.
func Sources(query string) (names []string, told bool) {
	r, l := newReader(query, false, Asked{})
	if r.unread || l.unterminated || l.backslash || !r.opens(0) && !r.isAny(0, "select", "with") {
		return nil, false
	}
	for at := range r.tokens {
		switch {
		case r.isName(at) && r.opens(at+1) && !r.isAny(at, beforeBracket...), r.is(at, "table"), r.tokens[at].kind == coded:
			return nil, false
		case r.isKeyword(at, "from"):
			for _, one := range r.items(at+1, r.listEnd(at+1, r.level(at)), nil) {
				for _, relation := range append(one.relations, one.settled...) {
					names = append(names, relation.text)
				}
			}
		}
	}
	return names, !r.unread
}

// beforeBracket are words that a bracket may follow without being a call.
var beforeBracket = []string{
	"select", "distinct", "on", "from", "join", "lateral", "where", "and", "or", "not", "in", "any", "all", "some", "exists", "as", "materialized",
	"using", "by", "having", "when", "then", "else", "union", "intersect", "except", "values", "limit", "offset", "between", "like", "is", "case", "over",
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
		for i := at + 1; i < end; i++ {
			within = within || r.isName(i) && strings.EqualFold(r.name(i), column)
		}
	}
	return main >= 0 && within
}
