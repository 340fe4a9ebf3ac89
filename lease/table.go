package lease

import (
	"fmt"
	"strings"

	"github.com/gormlock/gormlock/internal/pgarray"
)

// table is the table of a manager: its name, its kind, and the parameters of its statements.
type table struct {
	name     string // for people
	quoted   string
	owner    string // the name under which leases are taken, for people
	shedlock bool
	room     int // characters of a name in ShedLock's table, 0 is any number
	sql      *statements
}

func newTable(c *config) *table {
	t := &table{name: c.tableName(), quoted: c.quotedTable(), owner: c.owner, shedlock: c.shedlock}
	if t.shedlock {
		t.sql = shedlockStatements(t.quoted)
	} else {
		t.sql = ownStatements(t.quoted)
	}
	return t
}

func (t *table) acquireArgs(r *request, c claim) []any {
	args := []any{c.token.Space, c.token.ID, c.token.Name, c.holder, r.ttl.Microseconds()}
	if t.shedlock {
		return append(args, c.row)
	}
	return append(args, t.owner, r.data)
}

// acquireManyArgs are the parameters of listArgs, the names of the keys and the owner.
func (t *table) acquireManyArgs(items []item) []any {
	var names pgarray.Array
	for _, it := range items {
		names.Text(it.token.Name)
	}
	return append(t.listArgs(items), names.String(), t.owner)
}

func (t *table) releaseArgs(it item) []any {
	if t.shedlock {
		return []any{it.row, it.holder, it.span.Microseconds()}
	}
	return []any{it.token.Space, it.token.ID, it.holder, it.span.Microseconds()}
}

// listArgs returns lists as text: the keys, the holders, a span of time for each, and the spaces of the keys.
func (t *table) listArgs(items []item) []any {
	var keys, holders, spans, spaces pgarray.Array
	for _, it := range items {
		if t.shedlock {
			keys.Text(it.row)
		} else {
			keys.Int(it.token.ID)
		}
		holders.Text(it.holder)
		spans.Int(it.span.Microseconds())
		spaces.Int(int64(it.token.Space))
	}
	args := []any{keys.String(), holders.String(), spans.String()}
	if t.shedlock {
		return args // ShedLock's key is only the name
	}
	return append(args, spaces.String())
}

// keyArgs are the parameters that name one lease.
func (t *table) keyArgs(c claim) []any {
	if t.shedlock {
		return []any{c.row}
	}
	return []any{c.token.Space, c.token.ID}
}

// tableName returns the name of the table for people.
func (c *config) tableName() string {
	switch {
	case c.table != "":
		return c.table
	case c.shedlock:
		return "shedlock"
	}
	return "gormlock_lease"
}

// quotedTable returns the name of the table for SQL.
func (c *config) quotedTable() string {
	quoted, _ := quoteTable(c.tableName()) // checked when the option was given
	return quoted
}

// quoteTable quotes a name and its schema, which has at most 63 bytes each.
func quoteTable(name string) (string, error) {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		if part == "" || len(part) > 63 || strings.ContainsAny(part, "\x00$\"'\\\n") || len(parts) > 2 {
			return "", fmt.Errorf("%w: Table(%q) is not the name of a table: give a name of at most 63 bytes, or schema.name", ErrOption, name)
		}
		parts[i] = `"` + part + `"`
	}
	return strings.Join(parts, "."), nil
}
