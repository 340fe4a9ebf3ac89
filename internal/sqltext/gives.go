package sqltext

import (
	"slices"
	"strings"
)

// ReadsInto reports whether a text returns one column, and that may hold values of the named column: directly, under another name,
// or chosen by an expression. A number that is counted or computed from it does not qualify.
func ReadsInto(text, column string) bool {
	r, _ := newReader(text, false)
	if r.unread {
		return has(text, column)
	}
	v := values{reader: r, names: map[string]bool{strings.ToLower(column): true}}
	for known := 0; known < len(v.names); { // a name may be an alias of another one
		known = len(v.names)
		for at := range r.all {
			switch {
			case r.isKeyword(at, "select", "returning"):
				v.nameItems(at)
			case r.opens(at):
				v.rename(at)
			}
		}
	}
	lists := v.returned(0, len(r.all))
	for _, list := range lists {
		if len(list) != 1 {
			return false
		}
	}
	return v.anyGives(lists, 0)
}

// values follows what a column holds through the lists of a text.
type values struct {
	reader
	names map[string]bool // the columns that may hold it, in small letters
	star  bool            // an explicit list has it, so a star may return it
}

// listOf are the columns of the list after SELECT or RETURNING.
func (r reader) listOf(at int) []column {
	end := r.find(at+1, len(r.all), func(at int) bool {
		return r.isFrom(at) || r.isKeyword(at, listEnds...) || r.closes(at) || r.kind(at) == semicolon
	})
	return r.columns(r.behindDistinct(at+1), end)
}

// returned are the lists of columns that a query or a write returns, one for each query of a UNION.
func (v *values) returned(at, end int) (lists [][]column) {
	if last := v.find(at, end, func(at int) bool { return v.isKeyword(at, "returning") }); last < end {
		return [][]column{v.listOf(last)}
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

// anyGives reports whether the column at this place of any list may be the value.
func (v *values) anyGives(lists [][]column, place int) bool {
	for _, list := range lists {
		if place < len(list) && v.gives(list[place]) {
			return true
		}
	}
	return false
}

// nameItems adds the names of the columns of a list that may be the value.
func (v *values) nameItems(at int) {
	for _, c := range v.listOf(at) {
		if c.column == "*" || !v.gives(c) {
			continue
		}
		v.star = true
		if name, known := c.called(); known {
			v.names[strings.ToLower(name)] = true
		} else {
			v.names["case"] = true // PostgreSQL's name for a CASE
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
		for from = range v.all {
			if v.ends[from] == query && v.opens(from) {
				break
			}
		}
	case v.is(end+1, "as"):
		from = v.find(end+1, len(v.all), v.opens)
	default:
		return
	}
	if !v.opens(from) {
		return
	}
	lists := v.returned(from+1, v.ends[from])
	for place, part := range v.columns(open+1, v.ends[open]) {
		if v.isName(part.at) && v.anyGives(lists, place) {
			v.names[strings.ToLower(v.name(part.at))] = true
		}
	}
}

// choosing are functions that return one of their arguments, and casts.
var choosing = []string{
	"coalesce", "nullif", "ifnull", "greatest", "least", "max", "min", "any_value", "first_value", "last_value", "nth_value", "lag", "lead",
	"cast", "convert", "int2", "int4", "int8", "numeric",
}

// gives reports whether a column may be the value, because its expression is or chooses it.
func (v *values) gives(c column) bool {
	if c.column == "*" {
		return v.star
	}
	at, end := c.at, c.of
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
			given = given || !condition && v.givesInBrackets(c.at, open)
		case condition:
		case v.sign(at, "-") && (at == c.at || v.isAny(at-1, "then", "else")): // the sign of a number
			at++
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
	t := v.all[at]
	return t.kind == other && strings.ContainsAny(v.text[t.start:t.start+1], "+-*/%^<>=!|&#~@?") || v.isAny(at, "and", "or", "not", "is", "in", "like", "ilike", "between")
}

func (v *values) givesInBrackets(start, open int) bool {
	end := v.ends[open]
	switch called := open > start && v.isName(open-1) && !v.isAny(open-1, "then", "else"); {
	case called && !v.isAny(open-1, choosing...):
		return false
	case v.isQuery(open):
		return v.anyGives(v.returned(open+1, end), 0)
	}
	return slices.ContainsFunc(v.columns(open+1, end), v.gives)
}
