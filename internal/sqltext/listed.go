package sqltext

// Listed is one column of a list.
type Listed struct {
	Text   string   // as it is written
	Table  string   // before the name of the column that it is; empty if none is named
	Column string   // the column that it is, or * for all of them; empty if it is computed
	Names  []string // what it may be called where it comes back
}

// List reads a list of columns, such as that of RETURNING. It is not read if its brackets do not fit.
func List(text string) (columns []Listed, read bool) {
	r, l := newReader(text, false, Asked{})
	if r.unread || l.unterminated {
		return nil, false
	}
	for at := 0; at < len(r.tokens); {
		next := r.find(at, len(r.tokens), func(at int) bool { return r.sign(at, ",") })
		if next > at {
			columns = append(columns, r.listed(at, next))
		}
		at = next + 1
	}
	return columns, true
}

func (r *reader) listed(at, end int) Listed {
	c := Listed{Text: r.text[r.tokens[at].start:r.tokens[end-1].end]}
	if of := r.unnamed(at, end); of == end || r.isPath(at, of) {
		c.Table, c.Column = r.columnOf(at, of)
	}
	if c.Column == "*" {
		return c
	}
	if name, known := r.columnName(at, end); known {
		c.Names = []string{name, lower(name)}
		return c
	}
	for i := at; i < end; i++ { // after something in it, as PostgreSQL does
		if r.isName(i) {
			c.Names = append(c.Names, r.written(i), r.name(i))
		}
	}
	return c
}

// columnOf is the column that names with dots between them are, and what is before it.
func (r *reader) columnOf(at, end int) (table, column string) {
	last := end - 1
	isStar := r.sign(last, "*")
	if last < at || (last-at)%2 != 0 || !r.isPath(at, last) && last > at || !isStar && !r.isName(last) {
		return "", ""
	}
	if last > at {
		table = r.name(last - 2)
	}
	if isStar {
		return table, "*"
	}
	return table, r.name(last)
}
