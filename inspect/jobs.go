package inspect

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/gormlock/gormlock/internal/jobmark"
)

// JobQueue is a queue of a table of package work.
type JobQueue struct {
	Table   string        `json:"table"`
	Queue   string        `json:"queue"`
	Ready   int64         `json:"ready"`
	Running int64         `json:"running"`
	Later   int64         `json:"later"`
	Dead    int64         `json:"dead"`
	Oldest  time.Duration `json:"oldest"` // how long the oldest ready job has waited, in nanoseconds
	Died    string        `json:"died"`   // the error of the last job that died
}

// Jobs shows the jobs of models of package work, or of named tables, by queue: how many are ready, running, waiting for
// their time or dead. The table of a model is the one that [work.Migrate] made for it. Default: none.
//
// [work.Migrate]: https://pkg.go.dev/github.com/gormlock/gormlock/work#Migrate
func Jobs(models ...any) Option {
	return option(func(c *config) error {
		for _, model := range models {
			if table, ok := model.(string); ok && table != "" {
				c.jobs = append(c.jobs, jobTable{table: table})
				continue
			}
			t := reflect.TypeOf(model)
			if t != nil && t.Kind() == reflect.Pointer {
				t = t.Elem()
			}
			if t == nil || t.Kind() != reflect.Struct {
				return fmt.Errorf("gormlock: inspect: Jobs(%T) is neither a model nor the name of a table", model)
			}
			c.jobs = append(c.jobs, jobTable{model: jobmark.Of(t)})
		}
		return nil
	})
}

// jobTable is an argument of Jobs: a model or a name.
type jobTable struct{ model, table string }

// readJobs reads the tables that Jobs names. If one cannot be read, the rest is still shown.
func (r *reader) readJobs(ctx context.Context) {
	for _, t := range r.config.jobs {
		what := t.table
		if what == "" {
			what, _, _ = strings.Cut(strings.TrimPrefix(t.model, jobmark.Prefix), " ")
		}
		err := r.within(ctx, func(ctx context.Context, tx *sql.Tx) error { return r.readJobTable(ctx, tx, t) })
		if err != nil {
			r.unseen("the jobs of %s: %v", what, err)
		}
	}
}

func (r *reader) readJobTable(ctx context.Context, tx *sql.Tx, t jobTable) error {
	tables, err := tablesOf(ctx, tx, t)
	if err != nil {
		return err
	}
	if len(tables) == 0 {
		return fmt.Errorf("the table does not exist: work.Migrate makes it")
	}
	for _, table := range tables {
		if err := r.readQueues(ctx, tx, table); err != nil {
			return err
		}
	}
	return nil
}

// foundTable is a table of jobs.
type foundTable struct {
	name string // quoted
	live string // the end of a condition that excludes soft-deleted rows
}

// tablesOf are the tables of a model: each of two programs may have its own.
func tablesOf(ctx context.Context, tx *sql.Tx, t jobTable) (tables []foundTable, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT t::regclass::text, `+jobmark.Live("t")+`
		FROM (SELECT to_regclass(NULLIF($1, ''))::oid AS t UNION SELECT i.indrelid FROM pg_description d
			JOIN pg_index i ON i.indexrelid = d.objoid WHERE d.classoid = 'pg_class'::regclass AND d.objsubid = 0 AND d.description = $2) AS found
		WHERE t IS NOT NULL ORDER BY 1`, t.table, t.model)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var table foundTable
		if err := rows.Scan(&table.name, &table.live); err != nil {
			return nil, err
		}
		tables = append(tables, table)
	}
	return tables, rows.Err()
}

func (r *reader) readQueues(ctx context.Context, tx *sql.Tx, table foundTable) error {
	var parts []string
	for _, state := range []string{"ready", "running", "later", "dead"} { // each state has its own index
		parts = append(parts, "SELECT queue, state, count(*) AS n, "+jobmark.Waited+" AS oldest FROM "+table.name+" WHERE state = '"+state+"'"+table.live+" GROUP BY 1, 2")
	}
	rows, err := tx.QueryContext(ctx, `SELECT queue, COALESCE(sum(n) FILTER (WHERE state = 'ready'), 0)::bigint, COALESCE(sum(n) FILTER (WHERE state = 'running'), 0)::bigint,
		COALESCE(sum(n) FILTER (WHERE state = 'later'), 0)::bigint, COALESCE(sum(n) FILTER (WHERE state = 'dead'), 0)::bigint,
		(COALESCE(EXTRACT(EPOCH FROM now() - min(oldest)), 0) * 1000000)::bigint,
		CASE WHEN bool_or(state = 'dead') THEN (SELECT left(last_error, 300) FROM `+table.name+` AS d WHERE d.state = 'dead' AND d.queue = parts.queue`+table.live+` ORDER BY updated_at DESC NULLS LAST LIMIT 1) ELSE '' END
		FROM (`+strings.Join(parts, " UNION ALL ")+`) AS parts GROUP BY queue ORDER BY queue LIMIT $1`, r.config.limit)
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) && coded.SQLState() == "42703" { // undefined_column
		return fmt.Errorf("%s is no table of jobs, or its model gives the columns of work.Job other names than GORM's: %w", table.name, err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		q := JobQueue{Table: table.name}
		var oldest int64
		if err := rows.Scan(&q.Queue, &q.Ready, &q.Running, &q.Later, &q.Dead, &oldest, &q.Died); err != nil {
			return err
		}
		q.Oldest = time.Duration(oldest) * time.Microsecond
		r.view.Jobs = append(r.view.Jobs, q)
	}
	return rows.Err()
}
