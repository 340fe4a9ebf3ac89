package sqltext

import (
	"reflect"
	"slices"
)

// Asked is the locking clause at the end of a query.
type Asked struct {
	Strength int      // 1 is FOR UPDATE, 2 FOR NO KEY UPDATE, 3 FOR SHARE, 4 FOR KEY SHARE
	Of       []string // what it locks, by the names in the query: all of FROM if there are none
	Model    string   // the table whose rows the query is for, if it is for one
	Descends bool     // it locks in the queries in FROM too, as PostgreSQL's does
}

// Reach is how far a locking clause reaches into what the query reads.
type Reach struct {
	Relations []string // whose rows it locks, as the text names them
	Functions []string // that compute rows which the query reads too. It locks none of them
	With      string   // a WITH query that the query reads too, and in which it locks nothing
	SubQuery  string   // the same of another query in FROM
	Nothing   bool     // FROM has no table, only what computes rows
	Unread    bool     // the text is not understood
}

// ReachOf reads the text of a query, with or without the FOR of its locking clause.
//
// PostgreSQL locks in tables, in the queries in FROM, and through views. It passes by, without an error, what WITH queries
// and functions have read. What a level of the query does not read from, by its list of columns, does not matter.
func ReachOf(query string, asked Asked) Reach {
	reach, l := readReach(query, false, asked)
	if !l.backslash {
		return reach
	}
	switch escaped, e := readReach(query, true, asked); {
	case e.unterminated:
	case l.unterminated:
		return escaped
	case !reflect.DeepEqual(reach, escaped): // a setting of the server decides where the strings end
		reach = Reach{Unread: true}
	}
	return reach
}

func readReach(query string, escapes bool, asked Asked) (Reach, lexer) {
	r, l := newReader(query, escapes, asked)
	if l.unterminated || r.unread {
		return Reach{Unread: true}, l
	}
	f := r.query(0, len(r.tokens), nil, asked.Of)
	if r.unread {
		return Reach{Unread: true}, l
	}
	reach := Reach{Functions: f.functions, With: f.with, SubQuery: f.subQuery, Nothing: !f.hasRows()}
	for _, relation := range append(f.relations, f.settled...) {
		reach.Relations = append(reach.Relations, relation.text)
	}
	return reach, l
}

// reader reads the tokens of a query.
type reader struct {
	text   string
	tokens []token
	ends   []int // of the token that opens a bracket, the place of the one that closes it
	asked  Asked
	unread bool
}

func newReader(text string, escapes bool, asked Asked) (*reader, lexer) {
	r := &reader{text: text, tokens: make([]token, 0, 64), asked: asked}
	l := lexer{text: text, escapes: escapes}
	var open []int
	for t := l.next(); t.kind != eof; t = l.next() {
		here := len(r.tokens)
		r.tokens, r.ends = append(r.tokens, t), append(r.ends, here)
		switch {
		case t.kind == opening, r.sign(here, "["):
			open = append(open, here)
		case t.kind == closing, r.sign(here, "]"):
			if len(open) == 0 {
				r.unread = true
				return r, l
			}
			r.ends[open[len(open)-1]] = here
			open = open[:len(open)-1]
		}
	}
	r.unread = len(open) > 0
	return r, l
}

// is, sign and isName look at the token at a place, which may be behind the last one.
func (r *reader) is(at int, keyword string) bool {
	return at >= 0 && at < len(r.tokens) && is(r.text, r.tokens[at], keyword)
}

func (r *reader) isAny(at int, keywords ...string) bool {
	return slices.ContainsFunc(keywords, func(keyword string) bool { return r.is(at, keyword) })
}

// isKeyword is isAny where the word may be the name of a column too.
func (r *reader) isKeyword(at int, keywords ...string) bool {
	return r.isAny(at, keywords...) && !r.is(at-1, "as") && (at == 0 || !r.sign(at-1, "."))
}

func (r *reader) sign(at int, sign string) bool {
	return at >= 0 && at < len(r.tokens) && r.tokens[at].kind == other && r.text[r.tokens[at].start:r.tokens[at].end] == sign
}

func (r *reader) opens(at int) bool { return at < len(r.tokens) && r.tokens[at].kind == opening }

func (r *reader) isName(at int) bool {
	return at >= 0 && at < len(r.tokens) && (r.tokens[at].kind == word || r.tokens[at].kind == quoted || r.tokens[at].kind == coded)
}

func (r *reader) name(at int) string { return name(r.text, r.tokens[at]) }

// find is the place of the first token for which found holds, outside of brackets, or end.
func (r *reader) find(at, end int, found func(at int) bool) int {
	for at < end && !found(at) {
		at = r.ends[at] + 1
	}
	return min(at, end)
}

// found is what a locking clause does to a part of a query.
type found struct {
	relations      []relation // it locks in these
	settled        []relation // a clause of the part itself has locked in these
	functions      []string
	with, subQuery string
}

type relation struct{ text, name string }

// hasRows reports whether the part reads rows that can be locked, whether or not they are.
func (f found) hasRows() bool { return len(f.relations)+len(f.settled) > 0 || !f.isLocked() }

func (f found) isLocked() bool { return f.with == "" && f.subQuery == "" }

func (f found) has(name string) bool {
	is := func(r relation) bool { return r.name == name }
	return slices.ContainsFunc(f.relations, is) || slices.ContainsFunc(f.settled, is)
}

func (f found) and(g found) found {
	f.relations, f.settled = append(slices.Clip(f.relations), g.relations...), append(slices.Clip(f.settled), g.settled...)
	f.functions = append(slices.Clip(f.functions), g.functions...)
	if f.isLocked() {
		f.with, f.subQuery = g.with, g.subQuery
	}
	return f
}

// settle is for a part with a locking clause of its own.
func (f found) settle() found {
	f.settled, f.relations = append(slices.Clip(f.settled), f.relations...), nil
	return f
}

// withQuery is a query of WITH, whose name is known to what stands behind it.
type withQuery struct {
	name    string
	at, end int
	outer   *withQuery // known beside it
	knows   *withQuery // what it knows itself
	read    bool       // what is found in it is known, or is just being looked for
	found   found
}

// listEnds are the words behind FROM and its tables.
var listEnds = []string{"where", "group", "having", "window", "union", "intersect", "except", "order", "limit", "offset", "fetch", "for"}

// query reads a query: what a locking clause behind it, of these names or of all, locks in it.
func (r *reader) query(at, end int, known *withQuery, of []string) found {
	if r.is(at, "with") {
		at, known = r.with(at+1, end, known)
	}
	switch {
	case at < end && r.opens(at):
		return r.query(at+1, r.ends[at], known, of)
	case r.is(at, "table"):
		one, _ := r.factor(at+1, end, known)
		return one.found
	case r.is(at, "values"):
		return found{}
	case !r.is(at, "select"):
		r.unread = true
		return found{}
	}
	from := r.find(at+1, end, func(at int) bool {
		isDistinct := r.is(at-1, "distinct") && (r.is(at-2, "is") || r.is(at-2, "not"))
		return r.isKeyword(at, "from") && !isDistinct || r.isKeyword(at, listEnds...)
	})
	if !r.is(from, "from") || from == end {
		return found{}
	}
	items := r.items(from+1, r.listEnd(from+1, end), known)
	if named := slices.DeleteFunc(slices.Clone(items), func(i item) bool { return !i.isOne(of) }); len(named) > 0 {
		return allOf(named)
	}
	return r.readFrom(items, at+1, from)
}

func allOf(items []item) (f found) {
	for _, i := range items {
		f = f.and(i.found)
	}
	return f
}

func (r *reader) listEnd(at, end int) int {
	return r.find(at, end, func(at int) bool { return r.isKeyword(at, listEnds...) || r.is(at, "lock") && r.is(at+1, "in") })
}

// readFrom is what is found of the items that a list of columns reads from. If it may be any, the rows of the model are meant.
func (r *reader) readFrom(items []item, at, end int) found {
	names, all := r.columns(at, end)
	var f found
	for _, i := range items {
		if all || i.isOne(names) {
			f = f.and(i.found)
		}
	}
	if !f.hasRows() { // it reads what is computed, for each row of the others
		return allOf(items)
	}
	if all && slices.ContainsFunc(items, func(i item) bool { return i.isLocked() && i.has(r.asked.Model) }) {
		f.functions, f.with, f.subQuery = nil, "", ""
	}
	return f
}

// columns are the names of what a list of columns reads from. It may be all if a column has no name before it.
func (r *reader) columns(at, end int) (names []string, all bool) {
	for at < end {
		comma := r.find(at, end, func(at int) bool { return r.sign(at, ",") })
		switch last := r.unnamed(at, comma); {
		case last-at >= 3 && r.isName(last-3) && r.sign(last-2, ".") && (r.isName(last-1) || r.sign(last-1, "*")) && r.isPath(at, last-2):
			names, all = append(names, r.name(last-3)), all || r.tokens[last-3].kind == coded
		case last-at != 1 || !r.isConstant(at):
			return nil, true
		}
		at = comma + 1
	}
	return names, all
}

// unnamed is the end of a column without the name that it gets.
func (r *reader) unnamed(at, end int) int {
	switch {
	case end-at > 2 && r.is(end-2, "as"):
		return end - 2
	case end-at > 1 && r.isName(end-1) && !r.sign(end-2, "."):
		return end - 1
	}
	return end
}

// isPath reports whether the tokens are names with dots between them.
func (r *reader) isPath(at, end int) bool {
	for i := at; i < end; i++ {
		if (i-at)%2 == 0 && !r.isName(i) || (i-at)%2 == 1 && !r.sign(i, ".") {
			return false
		}
	}
	return true
}

func (r *reader) isConstant(at int) bool {
	return r.tokens[at].kind == other && !r.sign(at, "*") || r.isAny(at, "null", "true", "false")
}
