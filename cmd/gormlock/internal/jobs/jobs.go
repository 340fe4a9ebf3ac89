// Package jobs is the command that shows a table of package work.
package jobs

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/cli"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
	"github.com/gormlock/gormlock/internal/jobmark"
)

// Command is the command jobs.
type Command struct {
	server.Target
	json  bool
	limit int
}

// Usage implements [cli.Command].
func (*Command) Usage() cli.Usage {
	return cli.Usage{
		Name: "jobs", Args: "TABLE [requeue ID…]", AtLeast: 1, AtMost: -1, Summary: "jobs of package work: how many, how old, which died and why",
		Details: `
Shows the jobs of a table by queue: those that are ready, run, wait for their time or are
dead, and for how long the oldest that is ready has waited. Below are those that died
last, with their errors. requeue makes dead jobs ready again, from the first attempt on;
workers hear of it at once. Jobs that are soft-deleted are left out, as workers leave them
out. The columns are those that package work gives to a model.

Examples
  gormlock jobs mails
  gormlock jobs app.mails requeue 17 18
  gormlock jobs mails --json | jq '.dead[].id'`,
		Exits: [3]string{1: "with requeue: some of the jobs are not dead, and were left alone"},
	}
}

// Flags implements [cli.Command].
func (c *Command) Flags(set *flag.FlagSet) {
	c.Target.Flags(set)
	set.BoolVar(&c.json, "json", false, "JSON instead of tables; ids are strings in it")
	set.IntVar(&c.limit, "limit", 20, "how many dead jobs to show, a `NUMBER`")
}

// Run implements [cli.Command].
func (c *Command) Run(ctx context.Context, p *cli.Program, args []string) error {
	if c.limit < 0 {
		return fmt.Errorf("--limit %d is negative", c.limit)
	}
	var ids []int64
	if len(args) > 1 {
		if args[1] != "requeue" {
			return fmt.Errorf("unexpected argument %q after TABLE%s", args[1], cli.DidYouMean(args[1], []string{"requeue"}))
		}
		for _, arg := range args[2:] {
			id, err := strconv.ParseInt(arg, 10, 64)
			if err != nil {
				return fmt.Errorf("%q is not the ID of a job", arg)
			}
			ids = append(ids, id)
		}
		slices.Sort(ids)
		if ids = slices.Compact(ids); len(ids) == 0 {
			return fmt.Errorf("requeue names no ID: gormlock jobs %s shows those of dead jobs", args[0])
		}
	}
	return c.Ask(ctx, "jobs", func(ctx context.Context, db *sql.DB) error {
		t, err := tableAt(ctx, db, args[0])
		if err != nil {
			return err
		}
		if len(ids) > 0 {
			return t.requeue(ctx, p, ids)
		}
		return c.show(ctx, p, t)
	})
}

// table is a table of jobs.
type table struct {
	db   *sql.DB
	name string // quoted
	live string // the end of a condition that excludes soft-deleted rows
}

// columns are the columns of work.Job that are read here.
const columns = "id queue state priority run_at attempts max_attempts claimed_by claimed_until last_error version updated_at"

func tableAt(ctx context.Context, db *sql.DB, name string) (*table, error) {
	var quoted sql.NullString
	var missing, live string
	err := db.QueryRowContext(ctx, `SELECT to_regclass($1)::text, (SELECT COALESCE(string_agg(c, ', '), '') FROM unnest(string_to_array($2, ' ')) AS c
		WHERE NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = to_regclass($1) AND a.attname = c AND NOT a.attisdropped)),
		`+jobmark.Live("to_regclass($1)"), name, columns).Scan(&quoted, &missing, &live)
	switch {
	case err != nil:
		return nil, server.ErrorOf(err)
	case !quoted.Valid:
		return nil, fmt.Errorf("there is no table %s: name its schema too, or quote a name with capitals, as in '\"Mails\"'", name)
	case missing != "":
		return nil, fmt.Errorf("%s is not a table of jobs, it has no %s: work.Migrate makes one, and a model that gives the columns of work.Job other names than GORM's cannot be shown", name, missing)
	}
	return &table{db, quoted.String, live}, nil
}

// queue is the state of a queue.
type queue struct {
	Queue   string  `json:"queue"`
	Ready   int64   `json:"ready"`
	Running int64   `json:"running"`
	Later   int64   `json:"later"`
	Dead    int64   `json:"dead"`
	Oldest  float64 `json:"oldest_seconds"`
}

// died is a dead job.
type died struct {
	ID       int64      `json:"id,string"`
	Queue    string     `json:"queue"`
	Attempts int        `json:"attempts"`
	At       *time.Time `json:"at"` // nil: the row does not say
	Error    string     `json:"error"`
	ago      float64
}

func (c *Command) show(ctx context.Context, p *cli.Program, t *table) error {
	queues, err := t.queues(ctx)
	if err != nil {
		return server.ErrorOf(err)
	}
	dead, err := t.dead(ctx, c.limit)
	if err != nil {
		return server.ErrorOf(err)
	}
	if c.json {
		return p.JSON(struct {
			Queues []queue `json:"queues"`
			Dead   []died  `json:"dead"`
		}{queues, dead})
	}
	if len(queues) == 0 {
		p.Printf("%s: no job is ready, runs, waits for its time or is dead\n", terminal.OneLine(t.name))
		return nil
	}
	counts := terminal.Table{Head: []string{"QUEUE", "READY", "RUNNING", "LATER", "DEAD", "OLDEST"}}
	all := int64(0)
	for _, q := range queues {
		paint := p.Style.Red
		if q.Dead == 0 {
			paint = nil
		}
		counts.Add(terminal.Plain(q.Queue), number(q.Ready), number(q.Running), number(q.Later), terminal.Painted(fmt.Sprint(q.Dead), paint), terminal.Plain(seconds(q.Oldest)))
		all += q.Dead
	}
	lines, _, _ := counts.Lines(p.Style, p.Width())
	if len(dead) > 0 {
		table := terminal.Table{Head: []string{"DEAD", "QUEUE", "ATTEMPTS", "AGO", "ERROR"}}
		for _, d := range dead {
			first, _, _ := strings.Cut(d.Error, "\n")
			table.Add(terminal.Plain(fmt.Sprint(d.ID)), terminal.Plain(d.Queue), number(int64(d.Attempts)), terminal.Plain(seconds(d.ago)), terminal.Plain(first))
		}
		more, _, _ := table.Lines(p.Style, p.Width())
		lines = append(append(lines, ""), more...)
	}
	if left := all - int64(len(dead)); left > 0 {
		lines = append(lines, "", fmt.Sprintf("%d more are dead: --limit %d shows them", left, all))
	}
	p.Printf("%s\n", strings.Join(lines, "\n"))
	return nil
}

func number(n int64) terminal.Cell { return terminal.Plain(fmt.Sprint(n)) }

func seconds(s float64) string {
	if s <= 0 {
		return ""
	}
	d := time.Duration(s * float64(time.Second))
	if d > time.Second {
		d = d.Round(time.Second)
	}
	return d.Round(time.Millisecond).String()
}

func (t *table) queues(ctx context.Context) ([]queue, error) {
	var parts []string
	for _, state := range []string{"ready", "running", "later", "dead"} { // each state has its own index
		parts = append(parts, "SELECT queue, state, count(*) AS n, "+jobmark.Waited+" AS oldest FROM "+t.name+" WHERE state = '"+state+"'"+t.live+" GROUP BY 1, 2")
	}
	rows, err := t.db.QueryContext(ctx, `SELECT queue, sum(n) FILTER (WHERE state = 'ready'), sum(n) FILTER (WHERE state = 'running'), sum(n) FILTER (WHERE state = 'later'),
		sum(n) FILTER (WHERE state = 'dead'), COALESCE(EXTRACT(EPOCH FROM now() - min(oldest)), 0)::float8 FROM (`+strings.Join(parts, " UNION ALL ")+`) AS parts GROUP BY queue ORDER BY queue`)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	all := []queue{}
	for rows.Next() {
		var q queue
		var n [4]sql.NullInt64
		if err := rows.Scan(&q.Queue, &n[0], &n[1], &n[2], &n[3], &q.Oldest); err != nil {
			return nil, err
		}
		q.Ready, q.Running, q.Later, q.Dead = n[0].Int64, n[1].Int64, n[2].Int64, n[3].Int64
		all = append(all, q)
	}
	return all, rows.Err()
}

func (t *table) dead(ctx context.Context, limit int) ([]died, error) {
	// A time that JSON cannot represent is left out.
	rows, err := t.db.QueryContext(ctx, "SELECT id, queue, attempts, at, CASE WHEN at IS NULL THEN 0 ELSE EXTRACT(EPOCH FROM now() - GREATEST(at, now() - interval '290 years')) END::float8, last_error"+
		" FROM (SELECT id, queue, attempts, CASE WHEN updated_at BETWEEN '0001-01-02 UTC' AND '9999-12-30 UTC' THEN updated_at END AS at, last_error FROM "+t.name+
		" WHERE state = 'dead'"+t.live+" ORDER BY updated_at DESC NULLS LAST, id DESC LIMIT $1) AS dead", limit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	all := []died{}
	for rows.Next() {
		var d died
		if err := rows.Scan(&d.ID, &d.Queue, &d.Attempts, &d.At, &d.ago, &d.Error); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, rows.Err()
}

// requeue makes dead jobs ready again. The notification is in the same statement: nobody runs this so often that commits would have to wait.
func (t *table) requeue(ctx context.Context, p *cli.Program, ids []int64) error {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = strconv.FormatInt(id, 10)
	}
	var n int
	err := t.db.QueryRowContext(ctx, `WITH again AS (UPDATE `+t.name+` SET state = 'ready', attempts = 0, run_at = now(), claimed_by = '', claimed_until = NULL,
			version = version + 1, updated_at = now() WHERE id = ANY(string_to_array($1, ',')::bigint[]) AND state = 'dead'`+t.live+` RETURNING id),
		told AS (SELECT pg_notify('gormlock_work', to_regclass($2)::oid || ' ') FROM again LIMIT 1)
		SELECT (SELECT count(*) FROM again), (SELECT count(*) FROM told) * 0`, strings.Join(list, ","), t.name).Scan(&n, new(int))
	if err != nil {
		return server.ErrorOf(err)
	}
	p.Printf("%s of %s ready again\n", terminal.Count(n, "job"), terminal.OneLine(t.name))
	if n < len(ids) {
		return fmt.Errorf("%w: %d of %s are not dead, or do not exist, or are soft-deleted", cli.ErrNotDone, len(ids)-n, terminal.Count(len(ids), "job"))
	}
	return nil
}
