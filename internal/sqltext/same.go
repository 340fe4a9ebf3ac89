package sqltext

import (
	"slices"
	"strings"
)

// IsRepeated reports whether the n columns of this name that a query returns are one column of one table: one comes from a star, and the
// others are named explicitly, of the same table. If the text does not show that, it reports false.
func IsRepeated(query, name string, n int) bool {
	r, l := newReader(query, false)
	if l.unterminated || l.backslash || r.unread || !r.is(0, "select") || r.hasOuter("union", "intersect", "except") {
		return false
	}
	from, has := r.columnsEnd(1, len(r.all))
	alone := has && r.readsOne(from+1)
	var star string // the table before it
	stars, named := 0, []string{}
	for _, c := range r.columns(r.behindDistinct(1), from) {
		switch {
		case c.of < c.end, c.end-c.at == 1 && c.isAny(c.at, computedNames...):
		case c.column == "*":
			star, stars = c.from(), stars+1
		case c.column == name:
			named = append(named, c.from())
		}
	}
	// A schema need not be written: it matters only if two tables have one name.
	isStars := func(of string) bool {
		return alone || star != "" && of != "" && (strings.HasPrefix(of, star) || strings.HasPrefix(star, of))
	}
	return stars == 1 && (alone || star != "") && len(named) == n-1 && !slices.ContainsFunc(named, func(of string) bool { return !isStars(of) })
}

// from is the table before the name of a column, followed by its schema.
func (c column) from() (table string) {
	for i := c.of - 3; i >= c.at; i -= 2 {
		table += c.name(i) + "\x00"
	}
	return table
}

// computedNames are words that are computed values if they stand alone. Their columns have the same names.
var computedNames = []string{"user", "current_user", "session_user", "current_role", "current_catalog", "current_schema", "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"}

// readsOne reports whether FROM has exactly one table or query.
func (r reader) readsOne(at int) bool {
	if at >= len(r.all) || r.opens(at) && !r.isQuery(at) {
		return false
	}
	end := r.fromEnd(at, len(r.all))
	return r.itemEnd(at, end) == end
}

// hasOuter reports whether one of these keywords is outside of brackets.
func (r reader) hasOuter(keywords ...string) bool {
	return r.find(0, len(r.all), func(at int) bool { return r.isKeyword(at, keywords...) }) < len(r.all)
}
