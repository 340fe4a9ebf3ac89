package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/tables"
)

// ownTable is a table that gormlock keeps.
type ownTable struct {
	tables.Table
	key    []string // the columns that identify a row
	needed string   // who needs it
	make   string   // the call that makes it
	sweep  string   // the call that deletes rows of it, "" for none
}

// keyColumns identify a lock in the tables with a row for each lock.
var keyColumns = []string{"space", "id"}

// ownTables are all of them, with what this package knows about each.
func ownTables() []ownTable {
	about := map[string]ownTable{
		fence.Table:         {key: keyColumns, needed: "fencing tokens", make: "fence.Migrate"},
		"gormlock_lease":    {key: keyColumns, needed: "leases", make: "lease.Migrate"},
		"gormlock_schedule": {key: keyColumns, needed: "schedules of lease.Manager.Every", make: "lease.Migrate"},
		"gormlock_once":     {key: []string{"key"}, needed: "keys of Once", make: "gormlock.MigrateOnce", sweep: "SweepOnce"},
		inspect.Table:       {key: keyColumns, needed: "names of keys in ls", make: "inspect.Migrate, for gormlock.WithKeyNames,", sweep: "the sweep of old names"},
	}
	var all []ownTable
	for _, table := range tables.Own(gormlock.OnceSchema) {
		t := about[table.Name]
		t.Table = table
		all = append(all, t)
	}
	return all
}

// tableState describes one table of that name.
type tableState struct {
	schema                    string
	found, unlogged           bool // found: the search_path finds it
	closed                    bool // the role may not use its schema
	reads, inserts, updates   bool
	deletes                   bool
	keyed, primary            bool     // a unique key on the right columns; any primary key
	deferrable                []string // clauses that alter unique keys on these columns that are DEFERRABLE, without the columns
	view                      bool
	oid                       uint32
	columns                   []tables.Column
	indexes                   []string
	live, dead                int64
	bytes                     int64
	rowSecurityHidesSomething bool
}

// checkTables checks the tables of gormlock that the search_path of this connection finds.
func (x *examination) checkTables(ctx context.Context) error {
	for _, t := range ownTables() {
		states, err := x.tables(ctx, t)
		if err != nil {
			return err
		}
		x.reportTable(t, states)
	}
	return nil
}

func (x *examination) tables(ctx context.Context, t ownTable) ([]tableState, error) {
	rows, err := x.conn.Query(ctx, `SELECT n.nspname, c.oid = coalesce(to_regclass($1), 0), NOT has_schema_privilege(n.oid, 'USAGE'), c.relpersistence = 'u',
		has_table_privilege(c.oid, 'SELECT'), has_table_privilege(c.oid, 'INSERT'), has_table_privilege(c.oid, 'UPDATE'), has_table_privilege(c.oid, 'DELETE'),
		coalesce(k.keyed, false), coalesce(k.deferrable, '{}'),
		EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary), c.relkind = 'v', c.oid,
		ARRAY(SELECT x.relname::text FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid WHERE i.indrelid = c.oid AND i.indisvalid),
		coalesce(pg_stat_get_live_tuples(c.oid), 0), coalesce(pg_stat_get_dead_tuples(c.oid), 0), pg_relation_size(c.oid), row_security_active(c.oid)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		CROSS JOIN LATERAL (SELECT bool_or(i.indimmediate) AS keyed,
				array_agg(format('DROP CONSTRAINT IF EXISTS %1$I, ADD CONSTRAINT %1$I %2$s', o.conname, CASE o.contype WHEN 'p' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END)
					ORDER BY o.conname) FILTER (WHERE NOT i.indimmediate) AS deferrable
			FROM pg_index i LEFT JOIN pg_constraint o ON o.conindid = i.indexrelid AND o.contype IN ('p', 'u')
			WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL
			AND ARRAY(SELECT a.attname::text FROM pg_attribute a, unnest(i.indkey::smallint[]) WITH ORDINALITY AS u(n, at)
				WHERE a.attrelid = c.oid AND a.attnum = u.n AND u.at <= i.indnkeyatts ORDER BY 1) = $2::text[]) AS k
		WHERE c.relname = $1 AND c.relkind IN ('r', 'p', 'v') AND n.nspname !~ '^pg_temp' ORDER BY 2 DESC, 1`, t.Name, slices.Sorted(slices.Values(t.key)))
	if err != nil {
		return nil, err
	}
	states, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (s tableState, err error) {
		err = r.Scan(&s.schema, &s.found, &s.closed, &s.unlogged, &s.reads, &s.inserts, &s.updates, &s.deletes, &s.keyed, &s.deferrable, &s.primary, &s.view, &s.oid, &s.indexes,
			&s.live, &s.dead, &s.bytes, &s.rowSecurityHidesSomething)
		return s, err
	})
	if err != nil || len(states) == 0 || !states[0].found {
		return states, err
	}
	if rows, err = x.conn.Query(ctx, tables.ColumnsOf, states[0].oid); err != nil {
		return nil, err
	}
	states[0].columns, err = pgx.CollectRows(rows, pgx.RowToStructByPos[tables.Column])
	return states, err
}

func (x *examination) reportTable(t ownTable, states []tableState) {
	if len(states) == 0 {
		x.add(finding{Check: t.Name, Status: note, Says: "does not exist, which is fine unless " + t.needed + " are used", Cure: t.make + " makes it"})
		return
	}
	bad := func(how status, cure, format string, args ...any) {
		x.add(finding{Check: t.Name, Status: how, Says: fmt.Sprintf(format, args...), Cure: cure})
	}
	before := len(x.findings)
	var schemas []string
	for _, s := range states {
		schemas = append(schemas, s.schema)
	}
	s := states[0]
	if !s.found && !slices.ContainsFunc(states, func(s tableState) bool { return !s.closed }) {
		var quoted []string
		for _, schema := range schemas {
			quoted = append(quoted, pgx.Identifier{schema}.Sanitize())
		}
		bad(warning, "GRANT USAGE ON SCHEMA "+strings.Join(quoted, ", ")+" TO "+pgx.Identifier{x.server.Role}.Sanitize()+"; -- if this is the role of the program, and look again",
			"is in the schema %s, which this role may not use", strings.Join(schemas, ", "))
		return
	}
	if !s.found {
		bad(warning, "SET search_path to its schema for this role, or qualify nothing and keep one table",
			"is in the schema %s, where the search_path of this role does not find it", strings.Join(schemas, ", "))
		return
	}
	if len(states) > 1 {
		bad(warning, "keep one: programs that find different tables do not see each other's "+t.needed,
			"is in %d schemas: %s; this role finds the first", len(states), strings.Join(schemas, ", "))
	}
	on := pgx.Identifier{s.schema, t.Name}.Sanitize()
	x.reportColumns(t, s, on)
	x.reportKey(t, s, on)
	for _, name := range t.Index {
		if !s.view && !slices.Contains(s.indexes, name) {
			x.fixable(t, strings.Replace(t.Indexes()[name], " ON "+t.Name+" ", " ON "+on+" ", 1)+";", "has no index %s", name)
		}
	}
	if s.unlogged && t.Loss != "" {
		x.fixable(t, "ALTER TABLE "+on+" SET LOGGED;", "is UNLOGGED: after a crash %s", t.Loss)
	}
	if s.rowSecurityHidesSomething {
		bad(wrong, "ALTER TABLE "+on+" DISABLE ROW LEVEL SECURITY;", "has row level security, which may hide rows from this role")
	}
	grant := func(rights string) string {
		return "GRANT " + rights + " ON " + on + " TO " + pgx.Identifier{x.server.Role}.Sanitize() + "; -- if this is the role of the program"
	}
	if lacks := s.lacks(); lacks != "" {
		bad(warning, grant(lacks), "this role lacks %s on it", lacks)
	}
	if t.sweep != "" && !s.deletes {
		bad(warning, grant("DELETE"), "this role lacks DELETE on it, which %s needs", t.sweep)
	}
	const much = 64 << 20
	if s.dead > 10*max(s.live, 1000) && s.bytes > much {
		bad(warning, "find the old transaction that holds vacuum back (gormlock ls, pg_stat_activity.backend_xmin), then:\nVACUUM "+on+";",
			"is bloated: %s, %s and %s MB", terminal.Count(s.live, "row"), terminal.Count(s.dead, "dead row"), terminal.Thousands(s.bytes>>20))
	}
	if len(x.findings) == before {
		x.well(t.Name, "complete, with %s", terminal.Count(s.live, "row"))
	}
}

// reportColumns compares the columns with those of the DDL.
func (x *examination) reportColumns(t ownTable, s tableState, on string) {
	var missing, definitions []string
	var cure string
	for _, c := range t.Columns() {
		if !slices.ContainsFunc(s.columns, func(is tables.Column) bool { return is.Name == c.Name }) {
			missing = append(missing, c.Name)
			if add := t.Definition(c.Name); add != "" {
				definitions = append(definitions, "ADD COLUMN IF NOT EXISTS "+add)
			} else {
				cure = t.Cure(c.Name)
			}
		}
	}
	f := finding{Check: t.Name, Status: wrong}
	if len(missing) > 0 {
		f.Says, f.Cure = "has no column "+strings.Join(missing, ", "), cure
		if len(definitions) == len(missing) {
			f.Cure = "ALTER TABLE " + on + " " + strings.Join(definitions, ", ") + ";"
			f.Fix = []string{f.Cure}
		}
		x.add(f)
	}
	if s.view {
		return // its columns do not show NOT NULL and defaults
	}
	for _, d := range t.Deviations(s.columns) {
		f := finding{Check: t.Name, Status: wrong, Says: "its column " + d.Column + " " + d.Says}
		if d.Fix != nil {
			f.Fix = d.Fix(on)
			f.Cure = strings.Join(f.Fix, "\n")
		} else {
			f.Cure = d.Cure(on)
		}
		x.add(f)
	}
}

// reportKey checks the unique keys that identify a row.
func (x *examination) reportKey(t ownTable, s tableState, on string) {
	key := strings.Join(t.key, ", ")
	for _, alter := range s.deferrable {
		x.fixable(t, "ALTER TABLE "+on+" "+alter+" ("+key+");", "its key on (%s) is DEFERRABLE: INSERT … ON CONFLICT fails on it, whatever other keys there are", key)
	}
	if !s.keyed && !s.view && len(s.deferrable) == 0 {
		x.fixable(t, t.keyFix(s, on), "has no unique key on (%s): one key can have two rows", key)
	}
}

// fixable adds a finding that one statement cures.
func (x *examination) fixable(t ownTable, fix, format string, args ...any) {
	x.add(finding{Check: t.Name, Status: wrong, Says: fmt.Sprintf(format, args...), Cure: fix, Fix: []string{fix}})
}

// keyFix adds the key that identifies a row. It can be run again.
func (t ownTable) keyFix(s tableState, on string) string {
	key := strings.Join(t.key, ", ")
	if s.primary { // on other columns
		return "CREATE UNIQUE INDEX IF NOT EXISTS " + t.Name + "_key ON " + on + " (" + key + ");"
	}
	return "DO " + tables.DollarQuoted(" BEGIN IF NOT EXISTS (SELECT FROM pg_index WHERE indrelid = "+server.QuoteText(on)+"::regclass AND indisprimary) THEN ALTER TABLE "+on+
		" ADD PRIMARY KEY ("+key+"); END IF; END ") + ";"
}

// lacks are the privileges that the role needs but does not have.
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
