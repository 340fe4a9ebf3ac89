package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
)

// observed is a table whose rows are read twice.
type observed struct {
	versionColumn
	root     versionColumn // the table of which it is a partition, or itself
	keys     []string      // the columns of the primary key, quoted
	types    []string      // and their types
	readable bool
	rows     int64 // about how many rows it has
	updates  int64 // how many updates the server has counted

	whole  bool // every row was read
	failed string
	first  map[string]row // by key
	writes writes
}

// writes describes the writes to a table, or to all its partitions.
type writes struct {
	partitions    int // 0: it has none
	watched       int
	rows          int64 // about how many rows there are
	whole         bool  // every row was read
	written, kept int
	updates       int64    // that the server has counted
	examples      []string // keys of rows that kept the version
}

func (w *writes) add(other writes) {
	w.partitions += other.partitions
	w.watched += other.watched
	w.rows += other.rows
	w.whole = w.whole && other.whole
	w.written += other.written
	w.kept += other.kept
	w.updates += other.updates
	w.examples = append(w.examples, other.examples...)
}

// row is one version of a row of a table.
type row struct {
	key           []string
	xmin, version string
	page          int64 // where the row is
}

// maxObserved limits how many tables are watched: those with the most updates come first.
const maxObserved = 100

// checkWrites reads rows, waits, and reads them again. If the xmin of a row changed, it was written. If such a write kept the version, programs
// that read the row before cannot notice it.
func (x *examination) checkWrites(ctx context.Context) error {
	tables, left, err := x.observedTables(ctx)
	if err != nil {
		return err
	}
	for i := range tables {
		if err := x.firstLook(ctx, &tables[i]); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(x.observe):
	}
	for i := range tables {
		if err := x.secondLook(ctx, &tables[i]); err != nil {
			return err
		}
	}
	x.reportAll(tables)
	if left > 0 {
		x.add(finding{Check: "writes", Status: note, Says: fmt.Sprintf("%s with fewer updates were not watched: at most %d are", terminal.Count(left, "more table"), maxObserved)})
	}
	if len(tables) == 0 {
		x.add(finding{Check: "writes", Status: note, Says: "no table has a version column to watch", Cure: "--column names others"})
	}
	return nil
}

func (x *examination) observedTables(ctx context.Context) (tables []observed, left int, err error) {
	rows, err := x.conn.Query(ctx, `SELECT n.nspname, c.relname, a.attname, rn.nspname, r.relname,
		ARRAY(SELECT quote_ident(k.attname) FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY AS u(n, at) JOIN pg_attribute k ON k.attnum = u.n
			WHERE i.indrelid = c.oid AND i.indisprimary AND k.attrelid = c.oid ORDER BY at),
		ARRAY(SELECT format_type(k.atttypid, k.atttypmod) FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY AS u(n, at) JOIN pg_attribute k ON k.attnum = u.n
			WHERE i.indrelid = c.oid AND i.indisprimary AND k.attrelid = c.oid ORDER BY at),
		has_table_privilege(c.oid, 'SELECT'), greatest(c.reltuples, 0)::int8, coalesce(pg_stat_get_tuples_updated(c.oid), 0), k.name
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid AND c.relkind = 'r' JOIN pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_class r ON r.oid = coalesce(pg_partition_root(c.oid), c.oid) JOIN pg_namespace rn ON rn.oid = r.relnamespace`+versionColumns+`
		AND a.attgenerated = '' AND a.attidentity <> 'a'
		ORDER BY 10 DESC, 1, 2, 3`, usualNames, []string(x.columns))
	if err != nil {
		return nil, 0, err
	}
	tables, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (o observed, err error) {
		err = r.Scan(&o.schema, &o.table, &o.column, &o.root.schema, &o.root.table, &o.keys, &o.types, &o.readable, &o.rows, &o.updates, &o.kind)
		o.root.column, o.root.kind = o.column, o.kind
		return o, err
	})
	if len(tables) > maxObserved {
		tables, left = tables[:maxObserved], len(tables)-maxObserved
	}
	return tables, left, err
}

// firstLook reads every row of a small table, and some of a large one.
func (x *examination) firstLook(ctx context.Context, o *observed) error {
	switch {
	case !o.readable:
		o.failed = "this role may not read it: GRANT SELECT ON " + o.on() + " TO " + pgx.Identifier{x.server.Role}.Sanitize()
		return nil
	case len(o.keys) == 0:
		o.failed = "it has no primary key to find its rows by"
		return nil
	}
	o.first = map[string]row{}
	err := x.read(ctx, o, o.first, fmt.Sprintf("LIMIT %d", x.sample+1))
	if o.whole = len(o.first) <= x.sample; err == nil && !o.whole {
		err = x.readSome(ctx, o)
	}
	return o.excuse(ctx, err)
}

// readSome reads half of the sample from random pages, and half from the last pages, where new rows are. Rows that were read already say how many
// rows a page has.
func (x *examination) readSome(ctx context.Context, o *observed) error {
	pages := int64(0)
	for _, r := range o.first {
		pages = max(pages, r.page+1)
	}
	dense := max(float64(len(o.first))/float64(pages), 1)
	clear(o.first)
	var size int64
	err := x.conn.QueryRow(ctx, "SELECT pg_relation_size(to_regclass($1)) / current_setting('block_size')::int", o.on()).Scan(&size)
	if err != nil {
		return err
	}
	o.rows = max(o.rows, int64(dense*float64(size)))
	half := x.sample / 2
	last := max(size-int64(float64(half)/dense), 0)
	if err := x.read(ctx, o, o.first, fmt.Sprintf("WHERE ctid >= '(%d,0)' LIMIT %d", last, x.sample)); err != nil {
		return err
	}
	rest := x.sample - len(o.first)
	percent := min(100, max(0.0001, 120*float64(rest)/float64(o.rows)))
	return x.read(ctx, o, o.first, fmt.Sprintf("TABLESAMPLE SYSTEM (%f) LIMIT %d", percent, rest))
}

// secondLook reads the rows again and compares them.
func (x *examination) secondLook(ctx context.Context, o *observed) error {
	if o.failed != "" {
		return nil
	}
	second, err := x.again(ctx, o)
	if err := o.excuse(ctx, err); err != nil || o.failed != "" {
		return err
	}
	return x.compare(ctx, o, second)
}

// read adds rows to found.
func (x *examination) read(ctx context.Context, o *observed, found map[string]row, which string) error {
	ctx, cancel := context.WithTimeout(ctx, server.AskTimeout)
	defer cancel()
	rows, err := x.conn.Query(ctx, o.selects("t")+" FROM ONLY "+o.on()+" AS t "+which)
	if err != nil {
		return err
	}
	return collect(rows, found)
}

// again reads the rows of the first look again, by their keys.
func (x *examination) again(ctx context.Context, o *observed) (map[string]row, error) {
	ctx, cancel := context.WithTimeout(ctx, server.AskTimeout)
	defer cancel()
	columns := make([][]string, len(o.keys))
	for _, r := range o.first {
		for i, part := range r.key {
			columns[i] = append(columns[i], part)
		}
	}
	var arrays, names, joins []string
	var args []any
	for i, key := range o.keys {
		name := fmt.Sprintf("k%d", i+1)
		arrays = append(arrays, fmt.Sprintf("$%d::text[]::%s[]", i+1, o.types[i]))
		names = append(names, name)
		joins = append(joins, "t."+key+" = k."+name)
		args = append(args, columns[i])
	}
	sql := fmt.Sprintf("%s FROM unnest(%s) AS k(%s) JOIN ONLY %s AS t ON %s", o.selects("t"), strings.Join(arrays, ", "),
		strings.Join(names, ", "), o.on(), strings.Join(joins, " AND "))
	rows, err := x.conn.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	second := map[string]row{}
	return second, collect(rows, second)
}

func (o *observed) selects(from string) string {
	var keys []string
	for _, key := range o.keys {
		keys = append(keys, from+"."+key+"::text")
	}
	return fmt.Sprintf("SELECT ARRAY[%[1]s], %[2]s.xmin::text, coalesce(%[2]s.%[3]s::text, 'NULL'), (%[2]s.ctid::text::point)[0]::int8",
		strings.Join(keys, ", "), from, pgx.Identifier{o.column}.Sanitize())
}

func collect(rows pgx.Rows, into map[string]row) error {
	r := row{}
	_, err := pgx.ForEachRow(rows, []any{&r.key, &r.xmin, &r.version, &r.page}, func() error {
		into[strings.Join(r.key, "\x00")] = r
		r.key = nil
		return nil
	})
	return err
}

// excuse notes why one table cannot be watched. The others are still watched.
func (o *observed) excuse(ctx context.Context, err error) error {
	var refused *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &refused):
		o.failed = server.Refusal(refused)
		return nil
	}
	return err
}

// trigger is the DDL of a trigger that moves the version in writes that do not.
func (v versionColumn) trigger() string {
	if !v.counts() || strings.Contains(v.schema+v.table, ".") {
		return ""
	}
	return "\nor let a trigger move the version, by gormlock.VersionTrigger:\n" + strings.TrimSpace(gormlock.VersionTrigger(v.schema+"."+v.table, v.column))
}

// compare notes which rows were written, and which of them kept the version.
func (x *examination) compare(ctx context.Context, o *observed, second map[string]row) error {
	w := writes{watched: len(o.first), rows: o.rows, whole: o.whole}
	if o.whole {
		w.rows = int64(w.watched)
	}
	if o.root.name() != o.name() {
		w.partitions = 1
	}
	for id, before := range o.first {
		after, there := second[id]
		if !there || after.xmin == before.xmin {
			continue
		}
		w.written++
		if after.version == before.version {
			w.kept++
			w.examples = append(w.examples, strings.Join(before.key, ","))
		}
	}
	if err := x.conn.QueryRow(ctx, "SELECT coalesce(pg_stat_get_tuples_updated(to_regclass($1)), 0)", o.on()).Scan(&w.updates); err != nil {
		return err
	}
	w.updates = max(w.updates-o.updates, 0)
	o.writes = w
	return nil
}

// reportAll reports on each table, and on all partitions of a table together, because programs know the table.
func (x *examination) reportAll(tables []observed) {
	reported := map[versionColumn]bool{}
	for _, o := range tables {
		if o.failed != "" {
			x.add(finding{Check: "writes", Status: note, Says: o.name() + " was not watched: " + o.failed})
			continue
		}
		if reported[o.root] {
			continue
		}
		reported[o.root] = true
		all := writes{whole: true}
		for _, other := range tables {
			if other.root == o.root && other.failed == "" {
				all.add(other.writes)
			}
		}
		x.reportWrites(o.root, all)
	}
}

func (x *examination) reportWrites(v versionColumn, w writes) {
	slices.Sort(w.examples)
	examples := strings.Join(w.examples[:min(len(w.examples), 3)], " and ")
	scope := terminal.Count(w.watched, "row")
	if !w.whole {
		scope += " of about " + terminal.Thousands(w.rows)
	}
	if w.partitions > 0 {
		scope += " in " + terminal.Count(w.partitions, "partition")
	}
	scope += fmt.Sprintf(" watched for %s", x.observe)
	switch {
	case w.kept > 0:
		x.add(finding{
			Check: "writes", Status: wrong,
			Says: fmt.Sprintf("%s: %d of %s kept the version, such as the key %s (%s)", v.name(), w.kept, terminal.Count(w.written, "written row"), examples, scope),
			Cure: "find the writer: another program, psql, raw SQL, a model without the plugin; it is fine if only columns tagged unversioned were written" + v.trigger(),
		})
	case w.written == 0 && !w.whole && w.updates > 0:
		x.add(finding{Check: "writes", Status: note, Says: fmt.Sprintf("%s: the server counted %s, none in the sample (%s)", v.name(), terminal.Count(w.updates, "update"), scope), Cure: "--sample watches more rows"})
	default:
		x.well("writes", "%s: %s, each moved the version (%s)", v.name(), terminal.Count(w.written, "written row"), scope)
	}
}
