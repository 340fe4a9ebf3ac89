// Package jobmark is how package work marks the tables of its models, so that others find them without GORM: by a comment on
// the index of the jobs that are ready. It also holds what others have to know to count the jobs in them as work does.
package jobmark

import (
	"reflect"
	"strconv"
	"strings"
)

// Prefix begins each comment.
const Prefix = "gormlock work: "

// Of is the comment for a model.
func Of(model reflect.Type) string { return Prefix + model.PkgPath() + "." + model.Name() }

// hidden begins the comment that says which jobs workers leave out.
const hidden = Prefix + "soft-deleted by "

// Hidden is a column by which workers leave out jobs, such as that of a soft delete.
type Hidden struct {
	Column string
	Unless *string // the value of those that are not left out; nil: NULL
}

// HiddenBy is the comment for such columns, as a literal of SQL. It is there too if there are none: work knows the table then. It is on
// another index than that of the model.
func HiddenBy(columns []Hidden) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		if parts[i] = c.Column; c.Unless != nil {
			parts[i] += " = " + *c.Unless
		}
	}
	return "'" + strings.ReplaceAll(hidden+strings.Join(parts, ", "), "'", "''") + "'"
}

// Live is an expression for the end of a condition on the jobs of the table with this oid, which leaves out those that are hidden from
// workers. A table that work has not marked tells by the name that GORM gives to the column of a soft delete.
func Live(oid string) string {
	return `(SELECT COALESCE(string_agg(' AND ' || quote_ident(a.attname) || CASE WHEN part = a.attname THEN ' IS NULL' ELSE ' = ' || quote_literal(substr(part, length(a.attname) + 4)) END, ''), '')
		FROM unnest(COALESCE(
			(SELECT string_to_array(substr(d.description, ` + strconv.Itoa(len(hidden)+1) + `), ', ') FROM pg_index i JOIN pg_description d ON d.objoid = i.indexrelid AND d.classoid = 'pg_class'::regclass AND d.objsubid = 0
				WHERE i.indrelid = ` + oid + ` AND starts_with(d.description, '` + hidden + `') LIMIT 1),
			(SELECT ARRAY['deleted_at'] FROM pg_attribute g WHERE g.attrelid = ` + oid + ` AND g.attname = 'deleted_at' AND g.atttypid IN ('timestamptz'::regtype, 'timestamp'::regtype) AND NOT g.attnotnull))) AS part
		JOIN pg_attribute a ON a.attrelid = ` + oid + ` AND a.attnum > 0 AND NOT a.attisdropped AND (part = a.attname OR starts_with(part, a.attname || ' = ')))`
}

// Waited is since when the oldest job of a group that is ready has waited, as now() - Waited is an interval that every
// version of PostgreSQL and a time.Duration have room for: run_at may be infinite, or longer ago than 292 years.
const Waited = `min(GREATEST(LEAST(run_at, now()), now() - interval '290 years')) FILTER (WHERE state = 'ready')`
