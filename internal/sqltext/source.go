package sqltext

import (
	"slices"
	"strings"
)

// Sources are the names in a text that the columns it returns may come from, as the server stores them: of the one table that the columns
// are written to be of, else all of the text, whether they are of tables, columns or functions. They are told if all are known.
func Sources(text string) (names []string, told bool) {
	r, l := newReader(text, false, Asked{})
	if r.unread || l.unterminated || l.backslash || !r.opens(0) && !r.isAny(0, "select", "with", "values", "insert", "update", "delete", "merge", "replace") {
		return nil, false // FETCH and EXECUTE say nothing of what they give
	}
	end := r.ownColumns()
	if end == 0 {
		end = len(r.tokens)
	}
	seen := map[string]bool{}
	for at := range r.tokens {
		if kind := r.tokens[at].kind; kind == coded || kind == semicolon && at < len(r.tokens)-1 {
			return nil, false
		}
		if at >= end || !r.isName(at) || r.isKeyword(at, reserved...) {
			continue
		}
		if name := r.name(at); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names, true
}

// reserved are words of most queries, which no name is without quotes.
var reserved = []string{
	"select", "distinct", "all", "from", "where", "and", "or", "not", "as", "in", "is", "null", "on", "join", "left", "inner",
	"group", "order", "by", "limit", "returning", "with", "into", "set",
}

// ownColumns is where the first table of FROM ends in a query whose columns are all its own: it is the only one, or they are written with
// its name. It is 0 for any other text.
func (r *reader) ownColumns() int {
	if !r.is(0, "select") || r.hasOuter("union", "intersect", "except") {
		return 0
	}
	at := 1
	if r.isAny(at, "distinct", "all") {
		at++
	}
	var tables []string // of each column, empty where none is written
	for {
		end := r.find(at, len(r.tokens), func(at int) bool { return r.sign(at, ",") || r.isKeyword(at, "from") })
		of := r.unnamed(at, end)
		table, column := r.columnOf(at, of)
		if end == len(r.tokens) || column == "" {
			return 0
		}
		tables = append(tables, table)
		if at = end + 1; !r.sign(end, ",") {
			break
		}
	}
	if r.is(at, "only") {
		at++
	}
	if !r.isName(at) {
		return 0
	}
	at++
	for r.sign(at, ".") && r.isName(at+1) {
		at += 2
	}
	name, end := r.name(at-1), at
	if r.is(at, "as") {
		at++
	}
	joins := []string{"join", "inner", "left", "right", "full", "cross", "natural", "straight_join"}
	if r.isName(at) && !r.isKeyword(at, joins...) && !r.isKeyword(at, listEnds...) {
		name = r.name(at)
		at++
	}
	switch {
	case at == len(r.tokens), r.tokens[at].kind == semicolon, r.isKeyword(at, listEnds...):
		return end
	case !r.sign(at, ",") && !r.isKeyword(at, joins...), slices.ContainsFunc(tables, func(table string) bool { return table != name }):
		return 0
	}
	return end
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
