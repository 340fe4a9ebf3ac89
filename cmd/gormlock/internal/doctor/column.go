package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
)

// versionColumn is an integer column whose name says that it is a version.
type versionColumn struct {
	schema, table, column string
	notNull, hasDefault   bool
}

func (v versionColumn) on() string { return pgx.Identifier{v.schema, v.table}.Sanitize() }

// name is schema.table.column for people.
func (v versionColumn) name() string { return v.schema + "." + v.table + "." + v.column }

// columnNames are those of version columns.
func (x *examination) columnNames() []string {
	return append([]string{"version", "lock_version"}, x.columns...)
}

// checkColumns looks at version columns. Those of a primary key are something else: the
// versions of a migration.
func (x *examination) checkColumns(ctx context.Context) error {
	rows, err := x.conn.Query(ctx, `SELECT n.nspname, c.relname, a.attname, a.attnotnull, a.atthasdef OR a.attidentity <> ''
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
		AND a.atttypid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype) AND a.attname = ANY ($1)
		AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'
		AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND a.attnum = ANY (i.indkey))
		ORDER BY 1, 2, 3`, x.columnNames())
	if err != nil {
		return err
	}
	columns, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (v versionColumn, err error) {
		err = r.Scan(&v.schema, &v.table, &v.column, &v.notNull, &v.hasDefault)
		return v, err
	})
	if err != nil {
		return err
	}
	healthy := 0
	for _, v := range columns {
		if v.notNull && v.hasDefault {
			healthy++
			continue
		}
		x.add(v.finding())
	}
	for _, name := range x.columns {
		if !slices.ContainsFunc(columns, func(v versionColumn) bool { return v.column == name }) {
			x.add(finding{Check: "columns", Status: warning, Says: fmt.Sprintf("no table has an integer column %s that is not its key", name),
				Cure: "correct --column, or look in another database"})
		}
	}
	if healthy > 0 || len(columns) == 0 {
		x.well("columns", "%s with a default and without NULL", terminal.Count(healthy, "version column"))
	}
	return nil
}

// finding says what is wrong with a column, and the statements that repair it.
func (v versionColumn) finding() finding {
	var says, alter, fix []string
	column := pgx.Identifier{v.column}.Sanitize()
	initial := 1
	if v.column == "lock_version" {
		initial = 0 // as Rails has it
	}
	if !v.notNull {
		says = append(says, "is nullable: no condition on a version finds a row where it is NULL")
		alter = append(alter, "ALTER COLUMN "+column+" SET NOT NULL")
		fix = append(fix, fmt.Sprintf("UPDATE %s SET %s = %d WHERE %s IS NULL;", v.on(), column, initial, column))
	}
	if !v.hasDefault {
		says = append(says, "has no default: a program that does not know it inserts NULL, or fails")
		alter = slices.Insert(alter, 0, fmt.Sprintf("ALTER COLUMN %s SET DEFAULT %d", column, initial))
	}
	fix = append(fix, "ALTER TABLE "+v.on()+" "+strings.Join(alter, ", ")+";")
	cure := strings.Join(fix, "\n")
	if initial == 1 {
		cure += " -- 0 where Hibernate or Rails write too"
	}
	return finding{Check: "columns", Status: warning, Says: v.name() + " " + strings.Join(says, ", and "), Cure: cure, Fix: fix}
}
