// Package jobmark is how package work marks the tables of its models, so that others find them without GORM: by a comment on
// the index of the jobs that are ready. It also holds what others have to know to count the jobs in them as work does.
package jobmark

import "reflect"

// Prefix begins each comment.
const Prefix = "gormlock work: "

// Of is the comment for a model.
func Of(model reflect.Type) string { return Prefix + model.PkgPath() + "." + model.Name() }

// IsSoftDelete is the condition that a row a of pg_attribute is the column of a gorm.DeletedAt.
const IsSoftDelete = `a.attname = 'deleted_at' AND a.atttypid IN ('timestamptz'::regtype, 'timestamp'::regtype) AND NOT a.attnotnull AND NOT a.attisdropped`

// Live is the end of a condition on jobs that leaves out those that are soft-deleted, which no worker runs.
func Live(softDelete bool) string {
	if softDelete {
		return " AND deleted_at IS NULL"
	}
	return ""
}

// Waited is since when the oldest job of a group that is ready has waited, as now() - Waited is an interval that every
// version of PostgreSQL and a time.Duration have room for: run_at may be infinite, or longer ago than 292 years.
const Waited = `min(GREATEST(LEAST(run_at, now()), now() - interval '290 years')) FILTER (WHERE state = 'ready')`
