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

// deleted begins the comment that names the columns of gorm.DeletedAt.
const deleted = Prefix + "soft-deleted by "

// Deleted is the comment for the columns of gorm.DeletedAt, as a literal of SQL. It is on another index than that of the model.
func Deleted(columns []string) string {
	if len(columns) == 0 {
		return "NULL"
	}
	return "'" + strings.ReplaceAll(deleted+strings.Join(columns, ", "), "'", "''") + "'"
}

// Live is an expression for the end of a condition on the jobs of the table with this oid, which leaves out those that are
// soft-deleted: no worker runs them. A table that work did not make tells by the name that GORM gives to such a column.
func Live(oid string) string {
	return `(SELECT COALESCE(string_agg(' AND ' || quote_ident(a.attname) || ' IS NULL', ''), '') FROM pg_attribute a
		WHERE a.attrelid = ` + oid + ` AND a.attnum > 0 AND NOT a.attisdropped
		AND (a.attname = 'deleted_at' AND a.atttypid IN ('timestamptz'::regtype, 'timestamp'::regtype) AND NOT a.attnotnull
			OR EXISTS (SELECT FROM pg_index i JOIN pg_description d ON d.objoid = i.indexrelid AND d.classoid = 'pg_class'::regclass AND d.objsubid = 0
				WHERE i.indrelid = a.attrelid AND starts_with(d.description, '` + deleted + `')
				AND a.attname = ANY(string_to_array(substr(d.description, ` + strconv.Itoa(len(deleted)+1) + `), ', ')))))`
}

// Waited is since when the oldest job of a group that is ready has waited, as now() - Waited is an interval that every
// version of PostgreSQL and a time.Duration have room for: run_at may be infinite, or longer ago than 292 years.
const Waited = `min(GREATEST(LEAST(run_at, now()), now() - interval '290 years')) FILTER (WHERE state = 'ready')`
