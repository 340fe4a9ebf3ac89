package sqltext

// column is one of a list of columns, such as that of SELECT or RETURNING.
type column struct {
	*tokens
	at, end int    // its tokens
	of      int    // where its alias begins, or end
	isNamed bool   // it is a column of a table, or a star, and not computed
	table   string // the table before the column's name; empty if there is none
	column  string // the name of the column, or * for all columns; empty if it is computed
}

// columns reads the list of columns between two places.
func (r reader) columns(at, end int) (list []column) {
	for at < end {
		next := r.comma(at, end)
		list = append(list, newColumn(r.tokens, at, next))
		at = next + 1
	}
	return list
}

func newColumn(t *tokens, at, end int) column {
	c := column{tokens: t, at: at, end: end, of: end}
	switch {
	case end-at > 2 && t.is(end-2, "as"):
		c.of = end - 2
	case end-at > 1 && t.isName(end-1) && !t.sign(end-2, "."):
		c.of = end - 1
	}
	last := c.of - 1
	isStar := c.of == end && t.sign(last, "*")
	c.isNamed = (c.of-at)%2 == 1 && t.isPath(at, last) && (isStar || t.isName(last))
	if !c.isNamed {
		return c
	}
	if last > at {
		c.table = t.name(last - 2)
	}
	if c.column = "*"; !isStar {
		c.column = t.name(last)
	}
	return c
}

// called is the name under which a column comes back, as it is written. It is empty if no field can have that name. It is not known if the
// server makes the name from an expression.
func (c column) called() (name string, known bool) {
	last := c.end - 1
	switch call := c.find(c.at, c.end, c.opens); {
	case last < c.at, c.is(last, "end"): // of a CASE
		return "", false
	case last == c.at && c.kind(last) == other:
		return "", true
	case c.isName(last) && c.kind(last) != coded && (c.isNamed || c.of == last-1 || c.of == last && c.closes(c.of-1) && !c.casts()):
		return c.written(last), true
	case call > c.at && call < c.end && c.ends[call] == last && c.isPath(c.at, call) && !c.is(call-1, "cast"):
		return c.written(call - 1), true
	}
	return "", false
}

// casts reports whether it has a cast outside of brackets.
func (c column) casts() bool {
	return c.find(c.at, c.of, func(at int) bool { return c.sign(at, ":") }) < c.of
}

// Listed is one column of a list.
type Listed struct {
	Text   string   // as it is written
	Table  string   // the table before the column's name; empty if there is none
	Column string   // the name of the column, or * for all columns; empty if it is computed
	Names  []string // the names under which it may come back
}

// List reads a list of columns, such as that of RETURNING. It is not read if its brackets do not fit.
func List(text string) (columns []Listed, read bool) {
	r, l := newReader(text, false)
	if r.unread || l.unterminated {
		return nil, false
	}
	for _, c := range r.columns(0, len(r.all)) {
		if c.at < c.end {
			columns = append(columns, c.listed())
		}
	}
	return columns, true
}

func (c column) listed() Listed {
	listed := Listed{Text: c.between(c.at, c.end), Table: c.table, Column: c.column}
	if c.column == "*" {
		return listed
	}
	if name, known := c.called(); known {
		listed.Names = []string{name, lower(name)}
		return listed
	}
	for i := c.at; i < c.end; i++ { // PostgreSQL names it after something in it
		if c.isName(i) {
			listed.Names = append(listed.Names, c.written(i), c.name(i))
		}
	}
	return listed
}
