package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"github.com/gormlock/gormlock/inspect"
)

// list is the command ls.
type list struct {
	target
	filter
	json bool
}

func (*list) usage() usage {
	return usage{
		name: "ls", summary: "who holds which lock, and who waits",
		details: `
Shows every advisory lock of the database, every request that waits for a lock of any
kind, and what those wait for: requests that wait first, longest first, then what they
wait for, then the rest, and the leases of package lease. It takes no locks and needs no
privileges; what the role may not see is said below the table.

FOR is how long a request has waited. A lock that is held shows how old the transaction
or session that holds it is, as <5m: PostgreSQL does not say when a lock was granted.

Examples
  gormlock ls --waiting
  gormlock ls --key 'invoice/*' --json | jq '.locks[].pid'
  gormlock ls --waiting --limit 0 >/dev/null || page-somebody`,
		exits: [3]string{1: "with --waiting: something waits"},
	}
}

func (c *list) flags(set *flag.FlagSet) {
	c.target.flags(set)
	c.filter.flags(set)
	set.BoolVar(&c.json, "json", false, "JSON instead of a table; ids are strings in it")
}

func (c *list) run(ctx context.Context, p *program, _ []string) error {
	if err := c.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	db, err := c.open(ctx, "ls")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // it has only been asked
	v, err := snapshot(ctx, db, c.options()...)
	if err != nil {
		return err
	}
	c.apply(v)
	if c.json {
		err = p.json(v)
	} else {
		for _, line := range c.report(v, p) {
			p.printf("%s\n", line)
		}
	}
	if err == nil && c.waiting && v.Totals.Waiting > 0 && len(v.Locks) > 0 {
		return errFound
	}
	return err
}

// report is the table and what is to be said below it.
func (f *filter) report(v *inspect.View, p *program) []string {
	var lines []string
	if len(v.Locks) > 0 {
		lines = append(locks(v, p.style).lines(p.style, p.width()), "")
	}
	if len(v.Leases) > 0 {
		lines = append(lines, append(leases(v, p.style).lines(p.style, p.width()), "")...)
	}
	return append(lines, f.footer(v, p.style)...)
}

func (f *filter) footer(v *inspect.View, s style) []string {
	t := v.Totals
	lines := []string{fmt.Sprintf("%s in database %s, %s", count(t.Held, "advisory lock")+" held",
		oneLine(v.Server.Database), waits(t.Waiting))}
	if !f.all() {
		lines[0] += fmt.Sprintf(": %d shown", len(v.Locks))
	}
	if t.Cut > 0 {
		lines = append(lines, s.yellow(thousands(int64(t.Cut))+" more not shown: --limit 0 shows all, --waiting what matters"))
	}
	if t.Leases > len(v.Leases) && f.all() {
		lines = append(lines, s.yellow(fmt.Sprintf("%s, %d shown", count(t.Leases, "lease"), len(v.Leases))))
	}
	for _, u := range v.Unseen {
		lines = append(lines, s.yellow("not seen: "+oneLine(u)))
	}
	return lines
}

func waits(n int) string {
	if n == 1 {
		return "1 request waits"
	}
	return thousands(int64(n)) + " requests wait"
}

// locks is the table of a view.
func locks(v *inspect.View, s style) *table {
	t := &table{head: []string{"KEY", "TOKEN", "MODE", "SCOPE", "STATE", "FOR", "PID", "APPLICATION", "USER", "CLIENT", "BLOCKED BY", "DOING"}}
	for i := range v.Locks {
		l := &v.Locks[i]
		state := cell{"held", nil}
		switch {
		case !l.Granted:
			state = cell{"waits", s.red}
		case l.Waiters > 0:
			state = cell{"blocks", s.yellow}
		}
		t.add(cell{oneLine(l.Key), s.bold}, plain(number(l.Token)), plain(l.Mode), plain(string(l.Scope)), state, plain(age(v, l)), plain(process(l.Session)),
			plain(oneLine(l.Application)), plain(oneLine(l.User)), plain(l.Client), plain(pidList(l.Blockers)), plain(doing(l.Session)))
	}
	return t
}

// leases is the table of those in v.
func leases(v *inspect.View, s style) *table {
	t := &table{head: []string{"LEASE", "TOKEN", "STATE", "FOR", "OWNER"}}
	for _, l := range v.Leases {
		state, since := cell{"held", nil}, "expires in "+span(l.Expires.Sub(v.Taken))
		if l.Expired {
			state, since = cell{"free", s.dim}, "expired "+span(v.Taken.Sub(l.Expires))+" ago"
		}
		t.add(cell{oneLine(l.Key), s.bold}, plain(number(l.Token)), state, plain(since), plain(oneLine(l.Owner)))
	}
	return t
}

// number is n, and nothing for 0.
func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// age is how long a request has waited, or the most that a lock has been held.
func age(v *inspect.View, l *inspect.Lock) string {
	switch {
	case l.Since.IsZero():
		return "?"
	case l.Earliest:
		return "<" + span(v.Taken.Sub(l.Since)+1e9) // begun: it is not yet this old
	}
	return span(v.Taken.Sub(l.Since))
}

func process(s *inspect.Session) string {
	if s.Prepared != "" {
		return "prepared " + oneLine(s.Prepared)
	}
	return fmt.Sprint(s.PID)
}

// pidList is processes for people. Prepared transactions have the PID 0.
func pidList(pids []int) string {
	var list []string
	for _, pid := range pids {
		if pid == 0 {
			list = append(list, "a prepared transaction")
		} else {
			list = append(list, strconv.Itoa(pid))
		}
	}
	return strings.Join(list, " ")
}

// doing is what a session is at.
func doing(s *inspect.Session) string {
	query := cut(statement(s.Query), 200)
	switch {
	case s.Gone:
		return "gone"
	case s.Hidden:
		return "(hidden from this role)"
	case s.State == "" || s.State == "active":
		return query
	case query == "":
		return s.State
	}
	return s.State + ": " + query
}

// width is that of the terminal, 0 where there is none.
func (p *program) width() int {
	if !isTerminal(p.stdout) {
		return 0
	}
	columns, _ := size(p.stdout)
	return columns
}

// json prints a value, indented.
func (p *program) json(value any) error {
	e := json.NewEncoder(p.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(value)
}
