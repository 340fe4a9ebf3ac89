package sqltext

import "strings"

// Parameter is one $n of a text.
type Parameter struct {
	Start, End int // in the text
	Number     int
	Table      string // the table before the column's name, if there is one
	Column     string // the column that it is compared with, and nothing else: column = $1, column IN ($1, $2); empty: none
}

// Parameters finds the parameters of a text. ok is false if a setting of the server decides which of them are parts of
// a string, or if a string or comment has no end.
func Parameters(text string) (found []Parameter, ok bool) {
	ts, l := newTokens(text, false)
	listed := -1 // the place after a parameter in a list, where a comma and the next one may follow
	var of Parameter
	for at, t := range ts.all {
		if text[t.start] != '$' || t.end-t.start > 1 { // a string in dollar quotes
			continue
		}
		p := Parameter{Start: t.start, End: t.end}
		for p.End < len(text) && text[p.End] >= '0' && text[p.End] <= '9' && p.Number < 1<<20 {
			p.Number = 10*p.Number + int(text[p.End]-'0')
			p.End++
		}
		if p.Number == 0 {
			continue
		}
		var list bool
		if listed >= 0 && at == listed+1 && ts.sign(listed, ",") {
			p.Table, p.Column, list = of.Table, of.Column, true
		} else {
			p.Table, p.Column, list = ts.comparedWith(at)
		}
		listed, of = -1, p
		if list {
			listed = at + 2
		}
		if !ts.endsOperand(at+2) || ts.isInSubQuery(at) {
			p.Table, p.Column = "", ""
		}
		found = append(found, p)
	}
	return found, !l.backslash && !l.unterminated
}

// comparedWith is the column that the operand at a place is compared with, as in "column = here" or "column IN (here, …".
func (t *tokens) comparedWith(at int) (table, column string, list bool) {
	before := at - 1
	if t.opens(before) && t.is(before-1, "in") {
		list = true
		if before -= 2; t.is(before, "not") {
			before--
		}
	} else {
		end := before + 1
		for t.kind(before) == other && strings.IndexByte("+-*/<>=~!@#%^&|`?", t.text[t.all[before].start]) >= 0 && (before+1 == end || t.all[before].end == t.all[before+1].start) {
			before--
		}
		if before+1 == end {
			return "", "", false
		}
		switch t.between(before+1, end) {
		case "=", "<>", "!=", "<", ">", "<=", ">=":
		default:
			return "", "", false
		}
	}
	if !t.isName(before) || t.kind(before) == coded {
		return "", "", false
	}
	first := before
	for t.sign(first-1, ".") && t.isName(first-2) {
		first -= 2
	}
	if t.kind(first-1) != eof && !t.opens(first-1) && !t.isAny(first-1, "and", "or", "not", "where") || t.opens(first-1) && t.isName(first-2) && !t.isAny(first-2, "and", "or", "not", "where") {
		return "", "", false
	}
	if first < before {
		table = t.name(before - 2)
	}
	return table, t.name(before), list
}

// isInSubQuery reports whether a place is in brackets that hold a query of their own.
func (t *tokens) isInSubQuery(at int) bool {
	for open := range at {
		if t.opens(open) && t.ends[open] > at && t.isAny(open+1, "select", "with", "values", "table") {
			return true
		}
	}
	return false
}

// endsOperand reports whether an operand ends before a place.
func (t *tokens) endsOperand(at int) bool {
	return t.kind(at) == eof || t.closes(at) || t.sign(at, ",") || t.isAny(at, "and", "or")
}
