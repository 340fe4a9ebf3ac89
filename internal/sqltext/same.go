package sqltext

import (
	"slices"
	"strings"
)

// IsRepeated reports whether n columns of one name that a query returns are one column of one table: a star has it, and the list names it
// beside that, by itself and of the same table. It reports false where the text does not show that.
func IsRepeated(query, name string, n int) bool {
	r, l := newReader(query, false, Asked{})
	if l.unterminated || l.backslash || r.unread || !r.is(0, "select") || r.hasOuter("union", "intersect", "except") {
		return false
	}
	at := 1
	switch {
	case r.is(at, "distinct") && r.is(at+1, "on") && r.opens(at+2):
		at = r.ends[at+2] + 1
	case r.isAny(at, "distinct", "all"):
		at++
	}
	from := r.find(at, len(r.tokens), func(at int) bool { return r.isKeyword(at, "from") })
	alone := r.readsOne(from + 1)
	var star string // whose it is
	stars, named := 0, []string{}
	for at < from {
		end := r.find(at, from, func(at int) bool { return r.sign(at, ",") })
		of, column := r.reference(at, end)
		switch column {
		case "*":
			star, stars = of, stars+1
		case name:
			named = append(named, of)
		}
		at = end + 1
	}
	// Only where two tables have one name, their schemas must be said.
	isStars := func(of string) bool {
		return alone || star != "" && of != "" && (strings.HasPrefix(of, star) || strings.HasPrefix(star, of))
	}
	return stars == 1 && (alone || star != "") && len(named) == n-1 && !slices.ContainsFunc(named, func(of string) bool { return !isStars(of) })
}

// reference is the column that a part of a list names, and of what, with its schema behind it. It is none for an expression and for a column with
// another name.
func (r *reader) reference(at, end int) (of, column string) {
	_, column = r.columnOf(at, end)
	if column == "" || end-at == 1 && r.isAny(at, computedNames...) {
		return "", ""
	}
	for i := end - 3; i >= at; i -= 2 {
		of += r.name(i) + "\x00"
	}
	return of, column
}

// computedNames are words that are values where they stand alone, of columns of these names.
var computedNames = []string{"user", "current_user", "session_user", "current_role", "current_catalog", "current_schema", "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}

// readsOne reports whether FROM has one table, or one query.
func (r *reader) readsOne(at int) bool {
	if at >= len(r.tokens) || r.opens(at) && !r.isAny(at+1, "select", "with", "values", "table") {
		return false
	}
	end := r.listEnd(at, len(r.tokens))
	return r.find(at, end, func(at int) bool { return r.sign(at, ",") || r.isKeyword(at, "join", "straight_join") }) == end
}

// hasOuter reports whether one of these keywords is outside of brackets.
func (r *reader) hasOuter(keywords ...string) bool {
	return r.find(0, len(r.tokens), func(at int) bool { return r.isKeyword(at, keywords...) }) < len(r.tokens)
}
