package sqltext

import "strings"

// MayDouble reports whether a query may return two columns of one name that it does not write out: it has a star beside other columns,
// or a star over more than one table.
func MayDouble(query string) bool {
	switch stars := strings.Count(query, "*"); {
	case stars == 0, stars == 1 && !strings.Contains(query, ",") && !hasJoin(query):
		return false
	}
	r, _ := newReader(query, false, Asked{})
	stars, beside, tables := 0, false, false
	for at := range r.tokens {
		switch {
		case r.sign(at, "*") && r.isColumn(at):
			stars++
			beside = beside || r.endsColumn(at+1) && r.sign(at+1, ",") || r.sign(r.columnStart(at)-1, ",")
		case r.isKeyword(at, "join"):
			tables = true
		case r.isKeyword(at, "from"):
			end := r.find(at+1, len(r.tokens), func(at int) bool { return r.isKeyword(at, listEnds...) || r.closes(at) })
			tables = tables || r.find(at+1, end, func(at int) bool { return r.sign(at, ",") }) < end
		}
	}
	return stars > 1 || stars == 1 && (beside || tables)
}

// Query is a text without what ends it, so that it can stand in another query. It is none if it writes, or is several statements.
func Query(text string) (query string, is bool) {
	r, _ := newReader(text, false, Asked{})
	if r.unread || !r.opens(0) && !r.isAny(0, "select", "with", "values", "table") {
		return "", false
	}
	before := token{}
	for at, t := range r.tokens {
		if t.kind == semicolon {
			return text[:t.start], at == len(r.tokens)-1
		}
		if isWriting(text, t, before) {
			return "", false
		}
		before = t
	}
	return text, true
}

// hasJoin looks for the word wherever it stands.
func hasJoin(query string) bool {
	for i := 4; i <= len(query); i++ {
		if strings.EqualFold(query[i-4:i], "join") {
			return true
		}
	}
	return false
}

// isColumn reports whether the star here stands for columns: it is no sign of a multiplication, and not that of count(*).
func (r *reader) isColumn(at int) bool {
	before := r.columnStart(at) - 1
	return r.endsColumn(at+1) && (r.isAny(before, "select", "distinct", "all") || r.sign(before, ",") || r.closes(before))
}

// columnStart is the place where the name ends that the star here belongs to: t in t.*
func (r *reader) columnStart(at int) int {
	for r.sign(at-1, ".") && r.isName(at-2) {
		at -= 2
	}
	return at
}

func (r *reader) endsColumn(at int) bool {
	return at >= len(r.tokens) || r.sign(at, ",") || r.closes(at) || r.isAny(at, "from") || r.isAny(at, listEnds...)
}

func (r *reader) closes(at int) bool {
	return at >= 0 && at < len(r.tokens) && r.tokens[at].kind == closing
}
