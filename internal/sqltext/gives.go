package sqltext

import "strings"

// ReadsInto reports whether the only column that a text returns may be a value of the column of this name: by itself, under another name,
// or chosen by an expression. What is counted or computed from it is another number.
func ReadsInto(text, column string) bool {
	r, _ := newReader(text, false, Asked{})
	if r.unread {
		return has(text, column)
	}
	v := values{reader: r, names: map[string]bool{strings.ToLower(column): true}}
	for known := 0; known < len(v.names); { // a name may be another's
		known = len(v.names)
		for at := range r.tokens {
			switch {
			case r.isKeyword(at, "select", "returning"):
				v.nameItems(at)
			case r.opens(at):
				v.rename(at)
			}
		}
	}
	lists := v.returned(0, len(r.tokens))
	for _, list := range lists {
		if len(list) != 1 {
			return false
		}
	}
	return v.anyGives(lists, 0)
}

// values follows what a column holds through the lists of a text.
type values struct {
	*reader
	names map[string]bool // the columns that may hold it, in small letters
	star  bool            // a list that is not of a star has it, so that a star may
}

// span is a part of a text.
type span struct{ at, end int }

// listOf are the columns of the list behind SELECT or RETURNING.
func (r *reader) listOf(at int) []span {
	end := r.find(at+1, len(r.tokens), func(at int) bool {
		return r.isKeyword(at, "from") && !r.isDistinctFrom(at) || r.isKeyword(at, listEnds...) || r.closes(at) || r.tokens[at].kind == semicolon
	})
	at++
	switch {
	case r.is(at, "distinct") && r.is(at+1, "on") && r.opens(at+2):
		at = r.ends[at+2] + 1
	case r.isAny(at, "distinct", "all"):
		at++
	}
	return r.parts(at, end)
}

func (r *reader) isDistinctFrom(at int) bool {
	return r.is(at-1, "distinct") && (r.is(at-2, "is") || r.is(at-2, "not"))
}

// parts are what is between commas.
func (r *reader) parts(at, end int) (parts []span) {
	for at < end {
		next := r.find(at, end, func(at int) bool { return r.sign(at, ",") })
		parts = append(parts, span{at, next})
		at = next + 1
	}
	return parts
}

// returned are the lists of what a query or a write returns, one for each query of a UNION.
func (v *values) returned(at, end int) (lists [][]span) {
	if last := v.find(at, end, func(at int) bool { return v.isKeyword(at, "returning") }); last < end {
		return [][]span{v.listOf(last)}
	}
	if v.find(at, end, func(at int) bool {
		return v.isKeyword(at, "insert", "update", "delete", "merge") && !v.is(at-1, "for") && !v.is(at-1, "key")
	}) < end {
		return nil
	}
	begins := true
	for ; at < end; at = v.ends[at] + 1 {
		switch {
		case v.isKeyword(at, "select"):
			lists = append(lists, v.listOf(at))
		case v.opens(at) && begins:
			lists = append(lists, v.returned(at+1, v.ends[at])...)
		}
		begins = v.isKeyword(at, "union", "intersect", "except", "all", "distinct")
	}
	return lists
}

// anyGives reports whether a column of the lists, by its place, may be the value.
func (v *values) anyGives(lists [][]span, place int) bool {
	for _, list := range lists {
		if place < len(list) && v.gives(list[place].at, list[place].end) {
			return true
		}
	}
	return false
}

// nameItems adds the names of the columns of a list that may be the value.
func (v *values) nameItems(at int) {
	for _, item := range v.listOf(at) {
		if v.sign(item.end-1, "*") || !v.gives(item.at, item.end) {
			continue
		}
		v.star = true
		if name, known := v.columnName(item.at, item.end); known {
			v.names[strings.ToLower(name)] = true
		} else {
			v.names["case"] = true // what PostgreSQL calls it
		}
	}
}

// rename adds the names that a list in brackets gives to the columns of a query: (…) AS q (a, b), WITH q (a, b) AS (…).
func (v *values) rename(open int) {
	query, name := open-2, open-1
	if v.is(query, "as") {
		query--
	}
	from := 0
	switch end := v.ends[open]; {
	case !v.isName(name):
		return
	case v.closes(query):
		for from = range v.tokens {
			if v.ends[from] == query && v.opens(from) {
				break
			}
		}
	case v.is(end+1, "as"):
		from = v.find(end+1, len(v.tokens), v.opens)
	default:
		return
	}
	if !v.opens(from) {
		return
	}
	lists := v.returned(from+1, v.ends[from])
	for place, part := range v.parts(open+1, v.ends[open]) {
		if v.isName(part.at) && v.anyGives(lists, place) {
			v.names[strings.ToLower(v.name(part.at))] = true
		}
	}
}

// choosing are functions that return one of the values they are given, and those that cast.
var choosing = []string{
	"coalesce", "nullif", "ifnull", "greatest", "least", "max", "min", "any_value", "first_value", "last_value", "nth_value", "lag", "lead",
	"cast", "convert", "int2", "int4", "int8", "numeric",
}

// gives reports whether an expression may be the value, because it names or chooses it.
func (v *values) gives(at, end int) bool {
	if v.sign(end-1, "*") {
		return v.star && (at == end-1 || v.isPath(at, end-2))
	}
	start, end := at, v.unnamed(at, end)
	given, condition := false, false
	for ; at < end; at++ {
		switch {
		case v.isAny(at, "case", "when"):
			condition = true
		case v.isAny(at, "then", "else", "end"):
			condition = false
		case v.opens(at):
			open := at
			at = v.ends[at]
			given = given || !condition && v.givesInBrackets(start, open)
		case condition:
		case v.computes(at):
			return false
		case v.isName(at) && !v.opens(at+1) && !v.sign(at+1, ".") && v.names[strings.ToLower(v.name(at))]:
			given = true
		}
	}
	return given
}

// computes reports whether an operator is here, other than a cast.
func (v *values) computes(at int) bool {
	t := v.tokens[at]
	return t.kind == other && strings.ContainsAny(v.text[t.start:t.start+1], "+-*/%^<>=!|&#~@?") || v.isAny(at, "and", "or", "not", "is", "in", "like", "ilike", "between")
}

func (v *values) givesInBrackets(start, open int) bool {
	end := v.ends[open]
	switch called := open > start && v.isName(open-1) && !v.isAny(open-1, "then", "else"); {
	case called && !v.isAny(open-1, choosing...):
		return false
	case v.isAny(open+1, "select", "with", "values") || v.opens(open+1) && v.selects(open+1, end):
		return v.anyGives(v.returned(open+1, end), 0)
	}
	for _, part := range v.parts(open+1, end) {
		if v.gives(part.at, part.end) {
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
