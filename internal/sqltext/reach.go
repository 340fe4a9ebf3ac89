package sqltext

import (
	"cmp"
	"reflect"
	"slices"
)

// Asked is the locking clause at the end of a query.
type Asked struct {
	Strength int      // 1 is FOR UPDATE, 2 FOR NO KEY UPDATE, 3 FOR SHARE, 4 FOR KEY SHARE
	Of       []string // the tables that it locks, by their names in the query; none: all of FROM
	Model    string   // the table of the query's model, if it has one
	Descends bool     // it locks rows of sub-queries in FROM too, as in PostgreSQL
}

// Reach says which of the rows that a query reads its locking clause locks.
type Reach struct {
	Relations []string // the tables whose rows it locks, as the text names them
	Functions []string // functions that compute rows for the query, which cannot be locked
	Alone     []string // functions that are the only source of rows of the query, or of a query in its FROM
	With      string   // a WITH query that the query reads, without locks
	SubQuery  string   // another query in FROM that it reads without locks
	Nothing   bool     // FROM has no table, only what computes rows
	Unread    bool     // the text is not understood
}

// ReachOf reads the text of a query, with or without the FOR of its locking clause.
//
// PostgreSQL locks rows of tables, of queries in FROM, and of the tables under views. It does not lock rows that WITH queries
// and functions read, and reports no error. Items of FROM that no column of the query comes from do not matter.
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
	from, l := newReader(query, escapes)
	r := locking{from, asked}
	if l.unterminated || r.unread {
		return Reach{Unread: true}, l
	}
	f := r.query(0, len(r.all), nil, asked.Of)
	if r.unread {
		return Reach{Unread: true}, l
	}
	reach := Reach{Functions: f.functions, Alone: f.alone, With: f.with, SubQuery: f.subQuery, Nothing: !f.hasRows()}
	for _, relation := range append(f.relations, f.settled...) {
		reach.Relations = append(reach.Relations, relation.text)
	}
	return reach, l
}

// locking follows a locking clause to what it locks.
type locking struct {
	reader
	asked Asked
}

// found is what a locking clause does to a part of a query.
type found struct {
	relations      []relation // the clause locks their rows
	settled        []relation // a locking clause of the part itself locks their rows
	functions      []string
	alone          []string // the functions that are the only source of rows
	given          string   // a function with a query among its arguments, where the clause locks nothing
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
	f.functions, f.alone = append(slices.Clip(f.functions), g.functions...), append(slices.Clip(f.alone), g.alone...)
	if f.isLocked() {
		f.with, f.subQuery = g.with, g.subQuery
	}
	f.given = cmp.Or(f.given, g.given)
	return f
}

// beside adds what was computed if the query's columns come only from functions, and f is all of FROM.
func (f found) beside(computed found) found {
	if f.hasRows() {
		f.alone = append(slices.Clip(f.alone), computed.functions...)
	}
	if f.isLocked() {
		f.subQuery = computed.given
	}
	return f
}

// settle notes that the part has a locking clause of its own, which locks its tables.
func (f found) settle() found {
	f.settled, f.relations = append(slices.Clip(f.settled), f.relations...), nil
	return f
}

// query reads what a locking clause after a query locks in it: the items with these names, or all.
func (r locking) query(at, end int, known *withQuery, of []string) found {
	at, known = r.with(at, end, known)
	switch {
	case at < end && r.opens(at):
		return r.query(at+1, r.ends[at], known, of)
	case r.is(at, "table"):
		one, _ := r.item(at+1, end, known)
		return r.foundIn(one)
	case r.is(at, "values"):
		return found{}
	case !r.is(at, "select"):
		r.unread = true
		return found{}
	}
	from, has := r.columnsEnd(at+1, end)
	if !has {
		return found{}
	}
	items := r.items(from+1, r.fromEnd(from+1, end), known)
	for i := range items {
		items[i].found = r.foundIn(items[i])
	}
	if named := slices.DeleteFunc(slices.Clone(items), func(i item) bool { return !i.isOne(of) }); len(named) > 0 {
		return allOf(named)
	}
	return r.readFrom(items, r.columns(at+1, from))
}

func allOf(items []item) (f found) {
	for _, i := range items {
		f = f.and(i.found)
	}
	return f
}

// readFrom is what the clause does to the items that a list of columns reads from. If the list may read from any of them, the rows of the
// model count.
func (r locking) readFrom(items []item, list []column) found {
	names, all := tablesOf(list)
	var f found
	for _, i := range items {
		if all || i.isOne(names) {
			f = f.and(i.found)
		}
	}
	if own := r.ofModel(items); all && len(own.functions) > 0 && !own.hasRows() {
		f = own
	}
	if !f.hasRows() { // the columns are computed, for each row of the other items
		return allOf(items).beside(f)
	}
	if all && slices.ContainsFunc(items, func(i item) bool { return i.isLocked() && i.has(r.asked.Model) }) {
		f.functions, f.alone, f.with, f.subQuery = nil, nil, "", ""
	}
	return f
}

// ofModel is what the clause does to the items that have the name of the model's table in the query.
func (r locking) ofModel(items []item) found {
	return allOf(slices.DeleteFunc(slices.Clone(items), func(i item) bool { return r.asked.Model == "" || !i.isOne([]string{r.asked.Model}) }))
}

// tablesOf are the names of the tables that a list of columns reads from. all says that a column does not name its table.
func tablesOf(list []column) (names []string, all bool) {
	for _, c := range list {
		switch {
		case c.isNamed && c.of-c.at > 1:
			names, all = append(names, c.table), all || c.kind(c.of-3) == coded
		case c.of-c.at != 1 || !c.isConstant():
			return nil, true
		}
	}
	return names, all
}

func (c column) isConstant() bool {
	return c.kind(c.at) == other && !c.sign(c.at, "*") || c.isAny(c.at, "null", "true", "false")
}
