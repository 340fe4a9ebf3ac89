// Package look has the commands that show who holds what and who waits for whom, and that end a wait: ls, watch, why, cancel and terminate.
package look

import (
	"context"
	"database/sql"
	"flag"
	"fmt"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/cli"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
	"github.com/gormlock/gormlock/inspect"
)

// List is the command ls.
type List struct {
	server.Target
	filter
	json bool
}

// Usage implements [cli.Command].
func (*List) Usage() cli.Usage {
	return cli.Usage{
		Name: "ls", Summary: "who holds which lock, and who waits",
		Details: `
Shows every advisory lock of the database, every request that waits for a lock of any
kind, and what those wait for: requests that wait first, longest first, then what they
wait for, then the rest. Below are the leases of package lease, which of them lead or
have a slot, and its schedules: the last tick that was done, the next one, who ran it last
and what failed since. It takes no locks and needs no privileges; what the role may not
see is said below the tables.

FOR is how long a request has waited; a session lock of gormlock is asked for in slices of
less than a second, which count together. A lock that is held shows how old the transaction
or session that holds it is, as <5m: PostgreSQL does not say when a lock was granted.

Examples
  gormlock ls --waiting
  gormlock ls --key 'invoice/*' --json | jq '.locks[].pid'
  gormlock ls --waiting --limit 0 >/dev/null || page-somebody`,
		Exits: [3]string{1: "with --waiting: something waits"},
	}
}

// Flags implements [cli.Command].
func (c *List) Flags(set *flag.FlagSet) {
	c.Target.Flags(set)
	c.declare(set)
	set.BoolVar(&c.json, "json", false, "JSON instead of a table; ids are strings in it")
}

// Run implements [cli.Command].
func (c *List) Run(ctx context.Context, p *cli.Program, _ []string) error {
	if err := c.check(); err != nil {
		return err
	}
	return c.Ask(ctx, "ls", func(ctx context.Context, db *sql.DB) error { return c.list(ctx, p, db) })
}

func (c *List) list(ctx context.Context, p *cli.Program, db *sql.DB) error {
	v, err := server.Snapshot(ctx, db, c.options()...)
	if err != nil {
		return err
	}
	c.apply(v)
	if c.json {
		err = p.JSON(v)
	} else {
		for _, line := range c.report(v, p) {
			p.Printf("%s\n", line)
		}
	}
	if err == nil && c.waiting && v.Totals.Waiting > 0 && len(v.Locks) > 0 {
		return cli.ErrFound
	}
	return err
}

// report is the tables and the lines below them.
func (f *filter) report(v *inspect.View, p *cli.Program) []string {
	return append(tables(v, p), f.summary(v, p)...)
}

// tables are the lines of the tables of a view, with an empty line after each table.
func tables(v *inspect.View, p *cli.Program) []string {
	var lines []string
	if len(v.Locks) > 0 {
		lines = append(Locks(v, p), "")
	}
	if len(v.Leases) > 0 {
		lines = append(lines, append(leases(v, p), "")...)
	}
	if len(v.Schedules) > 0 {
		lines = append(lines, append(schedules(v, p), "")...)
	}
	return lines
}

// summary says how many locks there are, what is not shown, and what is probably wrong.
func (f *filter) summary(v *inspect.View, p *cli.Program) []string {
	t := v.Totals
	first := fmt.Sprintf("%s in database %s, %s", terminal.Count(t.Held, "advisory lock")+" held", terminal.OneLine(v.Server.Database), waits(t.Waiting, ""))
	if !f.all() {
		first += fmt.Sprintf(": %d shown", len(v.Locks))
	}
	var rest []string
	if t.Cut > 0 {
		rest = append(rest, terminal.Thousands(int64(t.Cut))+" more not shown: --limit 0 shows all, --waiting what matters")
	}
	if t.Leases > len(v.Leases) && f.all() {
		rest = append(rest, fmt.Sprintf("%s, %d shown", terminal.Count(t.Leases, "lease"), len(v.Leases)))
	}
	if t.Schedules > len(v.Schedules) && f.all() {
		rest = append(rest, fmt.Sprintf("%s, %d shown", terminal.Count(t.Schedules, "schedule"), len(v.Schedules)))
	}
	for _, u := range v.Unseen {
		rest = append(rest, "not seen: "+terminal.OneLine(u))
	}
	lines := []string{first}
	for _, text := range append(rest, hints(v)...) {
		for _, line := range terminal.Wrap(text, p.Width()) {
			lines = append(lines, p.Style.Yellow(line))
		}
	}
	return lines
}

// hints say what is probably wrong with the waits that are shown, at most for the first few.
func hints(v *inspect.View) []string {
	const shown = 3
	var lines []string
	more := 0
	for _, l := range v.Locks {
		switch {
		case l.Hint == "":
		case len(lines) < shown:
			lines = append(lines, fmt.Sprintf("%d waits: %s", l.PID, terminal.OneLine(l.Hint)))
		default:
			more++
		}
	}
	if more > 0 {
		lines = append(lines, waits(more, "more ")+" like that")
	}
	return lines
}

// waits says how many requests wait. more is an addition.
func waits(n int, more string) string {
	if n == 1 {
		return "1 " + more + "request waits"
	}
	return terminal.Count(n, more+"request") + " wait"
}
