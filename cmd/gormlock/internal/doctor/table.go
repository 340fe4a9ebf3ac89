package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/inspect"
)

// ownTable is a table that gormlock keeps.
type ownTable struct {
	name    string
	columns []string
	key     []string          // of these, by which a row is found
	later   map[string]string // columns that came with a later version, with their types: they can be added
	needed  string            // by what
	make    string            // what makes it
	loss    string            // what it means when it is forgotten in a crash, "" where it does not matter
}

// keyColumns are those of a lock in the tables that have a row for each.
var keyColumns = []string{"space", "id"}

var ownTables = []ownTable{
	{
		name: fence.Table, columns: []string{"space", "id", "token", "name"}, key: keyColumns, needed: "fencing tokens", make: "fence.Migrate",
		loss: "after a crash tokens start again, and a superseded holder is let in",
	},
	{
		name: "gormlock_lease", columns: []string{"space", "id", "name", "holder", "owner", "expires_at"}, key: keyColumns, needed: "leases", make: "lease.Migrate",
		loss: "after a crash two programs hold one lease",
	},
	{
		name: "gormlock_schedule", columns: []string{"space", "id", "name", "settled_at", "tick_at", "attempts", "retry_at", "next_at", "token"}, key: keyColumns,
		needed: "schedules of lease.Manager.Every", make: "lease.Migrate", loss: "after a crash ticks that were missed are forgotten, and others are run twice",
	},
	{
		name: "gormlock_once", columns: []string{"key", "request", "result", "created_at", "expires_at"}, key: []string{"key"}, needed: "keys of Once", make: "gormlock.MigrateOnce",
		later: map[string]string{"request": "bytea", "expires_at": "timestamptz"},
		loss:  "after a crash requests that were done are done again",
	},
	{
		name: inspect.Table, columns: []string{"space", "id", "name", "scope", "seen_at"}, key: keyColumns, needed: "names of keys in ls",
		make: "inspect.Migrate, for gormlock.WithKeyNames,",
	},
}

// tableState is one table of that name.
type tableState struct {
	schema                    string
	found, unlogged           bool // found: it is the one of the search_path
	reads, inserts, updates   bool
	keyed                     bool
	columns                   []string
	live, dead                int64
	bytes                     int64
	rowSecurityHidesSomething bool
}

// checkTables looks at the tables of gormlock by the search_path of this connection.
func (x *examination) checkTables(ctx context.Context) error {
	for _, t := range ownTables {
		states, err := x.tables(ctx, t)
		if err != nil {
			return err
		}
		x.reportTable(t, states)
	}
	return nil
}

func (x *examination) tables(ctx context.Context, t ownTable) ([]tableState, error) {
	rows, err := x.conn.Query(ctx, `SELECT n.nspname, c.oid = coalesce(to_regclass($1), 0), c.relpersistence = 'u',
		has_table_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'INSERT'), has_table_privilege(c.oid, 'UPDATE'),
		EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
			AND (SELECT array_agg(a.attname::text ORDER BY a.attname) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey)) = $2::text[]),
		ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
		coalesce(pg_stat_get_live_tuples(c.oid), 0), coalesce(pg_stat_get_dead_tuples(c.oid), 0), pg_relation_size(c.oid), row_security_active(c.oid)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relname = $1 AND c.relkind IN ('r', 'p', 'v') AND n.nspname !~ '^pg_temp' ORDER BY 2 DESC, 1`, t.name, slices.Sorted(slices.Values(t.key)))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (s tableState, err error) {
		err = r.Scan(&s.schema, &s.found, &s.unlogged, &s.reads, &s.inserts, &s.updates, &s.keyed, &s.columns,
			&s.live, &s.dead, &s.bytes, &s.rowSecurityHidesSomething)
		return s, err
	})
}

func (x *examination) reportTable(t ownTable, states []tableState) {
	if len(states) == 0 {
		x.add(finding{Check: t.name, Status: note, Says: "does not exist, which is fine unless " + t.needed + " are used", Cure: t.make + " makes it"})
		return
	}
	bad := func(how status, cure, format string, args ...any) {
		x.add(finding{Check: t.name, Status: how, Says: fmt.Sprintf(format, args...), Cure: cure})
	}
	fixable := func(fix, format string, args ...any) {
		x.add(finding{Check: t.name, Status: wrong, Says: fmt.Sprintf(format, args...), Cure: fix, Fix: []string{fix}})
	}
	before := len(x.findings)
	var schemas []string
	for _, s := range states {
		schemas = append(schemas, s.schema)
	}
	s := states[0]
	if !s.found {
		bad(warning, "SET search_path to its schema for this role, or qualify nothing and keep one table",
			"is in the schema %s, where the search_path of this role does not find it", strings.Join(schemas, ", "))
		return
	}
	if len(states) > 1 {
		bad(warning, "keep one: programs that find different tables do not see each other's "+t.needed,
			"is in %d schemas: %s; this role finds the first", len(states), strings.Join(schemas, ", "))
	}
	on := pgx.Identifier{s.schema, t.name}.Sanitize()
	if missing := missingOf(t.columns, s.columns); len(missing) > 0 {
		if add, ok := t.adds(missing); ok {
			fixable("ALTER TABLE "+on+" "+add+";", "has no column %s", strings.Join(missing, ", "))
		} else {
			bad(wrong, "rename it and let "+t.make+" make it anew", "has no column %s", strings.Join(missing, ", "))
		}
	}
	if !s.keyed {
		key := strings.Join(t.key, ", ")
		fixable("ALTER TABLE "+on+" ADD PRIMARY KEY ("+key+");", "has no unique key on (%s): one key can have two rows", key)
	}
	if s.unlogged && t.loss != "" {
		fixable("ALTER TABLE "+on+" SET LOGGED;", "is UNLOGGED: %s", t.loss)
	}
	if s.rowSecurityHidesSomething {
		bad(wrong, "ALTER TABLE "+on+" DISABLE ROW LEVEL SECURITY;", "has row level security, which may hide rows from this role")
	}
	if lacks := s.lacks(); lacks != "" {
		bad(warning, "GRANT "+lacks+" ON "+on+" TO "+pgx.Identifier{x.server.Role}.Sanitize()+"; -- if this is the role of the program", "this role lacks %s on it", lacks)
	}
	const much = 64 << 20
	if s.dead > 10*max(s.live, 1000) && s.bytes > much {
		bad(warning, "find the old transaction that holds vacuum back (gormlock ls, pg_stat_activity.backend_xmin), then:\nVACUUM "+on+";",
			"is bloated: %s, %s and %s MB", terminal.Count(s.live, "row"), terminal.Count(s.dead, "dead row"), terminal.Thousands(s.bytes>>20))
	}
	if len(x.findings) == before {
		x.well(t.name, "complete, with %s", terminal.Count(s.live, "row"))
	}
}

// adds is how columns are added that a table of an earlier version has not. It reports false when one of them is not of
// that kind.
func (t ownTable) adds(missing []string) (string, bool) {
	var parts []string
	for _, column := range missing {
		kind, ok := t.later[column]
		if !ok {
			return "", false
		}
		parts = append(parts, "ADD COLUMN "+column+" "+kind)
	}
	return strings.Join(parts, ", "), true
}

func missingOf(wanted, there []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(c string) bool { return slices.Contains(there, c) })
}

// lacks are the privileges that the role needs and has not.
func (s tableState) lacks() string {
	var list []string
	for _, p := range []struct {
		name string
		has  bool
	}{{"SELECT", s.reads}, {"INSERT", s.inserts}, {"UPDATE", s.updates}} {
		if !p.has {
			list = append(list, p.name)
		}
	}
	return strings.Join(list, ", ")
}
