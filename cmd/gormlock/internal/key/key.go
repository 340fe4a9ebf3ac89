// Package key is the command key: which lock a name stands for, in the schemes of gormlock and of other programs.
package key

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/cli"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/look"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/lockid"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/lockkey/compat"
)

// Command shows the lock that a name stands for.
type Command struct {
	server.Target
	scheme  string
	schemes bool
	offline bool
	json    bool
}

// Usage implements [cli.Command].
func (*Command) Usage() cli.Usage {
	return cli.Usage{
		Name: "key", Args: "PART…", AtMost: -1, Summary: "the lock id of a name, its SQL, and who holds it now",
		Details: `
Shows the id that a name has, the SQL that computes it, the SQL that takes the lock, and
who holds it or waits for it when a server is named. Without --scheme the parts are those
of gormlock.Key: gormlock key invoice 42 is gormlock.Key("invoice", 42), and a number is
its text, so gormlock.Key("invoice", "42") as well. With --scheme they are what another
program makes its ids of; --schemes lists them.

Examples
  gormlock key invoice 42
  gormlock key --scheme rails orders:42
  gormlock key --scheme flyway public flyway_schema_history
  psql -c "SELECT pg_try_advisory_lock($(gormlock key invoice 42 --json | jq -r .arguments))"`,
	}
}

// Flags implements [cli.Command].
func (c *Command) Flags(set *flag.FlagSet) {
	c.Target.Flags(set)
	set.StringVar(&c.scheme, "scheme", gormlockScheme, "whose ids: a `NAME` that --schemes lists")
	set.BoolVar(&c.schemes, "schemes", false, "list the schemes and what they are made of")
	set.BoolVar(&c.offline, "offline", false, "ask no server who holds it")
	set.BoolVar(&c.json, "json", false, "JSON instead of text; ids are strings in it")
}

// keyReport is what the command shows, and its JSON.
type keyReport struct {
	Key       string   `json:"key"`
	Scheme    string   `json:"scheme"`
	Space     int      `json:"space"`     // objsubid of pg_locks: 1 one bigint, 2 two int4
	Arguments string   `json:"arguments"` // of pg_advisory_lock
	ClassID   uint32   `json:"classid"`
	ObjectID  uint32   `json:"objid"`
	Compute   string   `json:"compute,omitempty"`
	Needs     string   `json:"needs_extension,omitempty"`
	Take      []string `json:"take"`
	Reserved  string   `json:"reserved_by,omitempty"`

	Database string         `json:"database,omitempty"` // the database in which holders were looked up
	Locks    []inspect.Lock `json:"locks,omitempty"`
	Unseen   []string       `json:"unseen,omitempty"`
}

// Run implements [cli.Command].
func (c *Command) Run(ctx context.Context, p *cli.Program, args []string) error {
	if c.schemes {
		return c.list(p, args)
	}
	s, err := schemeNamed(c.scheme)
	if err != nil {
		return err
	}
	if err := s.count(args); err != nil {
		return fmt.Errorf("%w: gormlock key --help says more", err)
	}
	if s.row != nil {
		return c.row(p, s, args)
	}
	k, err := s.key(args)
	if err != nil {
		return err
	}
	r := reportOf(s, k, args)
	if c.offline || !c.Given() {
		return c.print(p, r, nil)
	}
	ctx, cancel := context.WithTimeout(ctx, server.AskTimeout)
	defer cancel()
	v, err := c.look(ctx, k, r)
	if printed := c.print(p, r, v); printed != nil {
		return printed
	}
	return err
}

func reportOf(s scheme, k lockkey.Key, args []string) *keyReport {
	r := &keyReport{Key: k.String(), Scheme: s.names[0], Arguments: ids(k)}
	id, _ := lockid.Of(k) // no scheme makes a key of two locks
	r.Space = int(id.Space)
	r.ClassID, r.ObjectID = id.Halves()
	if sql := s.compute(k, args); sql != "" {
		r.Compute, r.Needs = "SELECT "+sql+";", s.needs
	}
	for _, function := range []string{"pg_advisory_xact_lock", "pg_advisory_lock"} {
		r.Take = append(r.Take, "SELECT "+function+"("+r.Arguments+");")
	}
	r.Reserved, _ = compat.Reserved(k)
	return r
}

// look asks the server who holds the key, and stores it in r.
func (c *Command) look(ctx context.Context, k lockkey.Key, r *keyReport) (*inspect.View, error) {
	db, err := c.Open(ctx, "key")
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }() // nothing was written
	v, err := server.Snapshot(ctx, db, inspect.Limit(math.MaxInt32), inspect.Known(k))
	if err != nil {
		return nil, err
	}
	id, _ := lockid.Of(k) // no scheme makes a key of two locks
	v.Locks = slices.DeleteFunc(v.Locks, func(l inspect.Lock) bool {
		return l.Kind != inspect.Advisory || l.Space != id.Space || l.ID != id.ID
	})
	r.Database, r.Locks, r.Unseen = v.Server.Database, v.Locks, v.Unseen
	return v, nil
}

func (c *Command) print(p *cli.Program, r *keyReport, v *inspect.View) error {
	if c.json {
		return p.JSON(r)
	}
	line := func(name, text string) { p.Printf("%s %s\n", p.Style.Dim(fmt.Sprintf("%-9s", name)), text) }
	line("key", p.Style.Bold(r.Key))
	if r.Scheme != gormlockScheme {
		line("scheme", r.Scheme)
	}
	line("id", r.Arguments)
	line("pg_locks", fmt.Sprintf("classid = %d AND objid = %d AND objsubid = %d", r.ClassID, r.ObjectID, r.Space))
	compute := r.Compute
	if r.Needs != "" && compute != "" {
		compute += " -- CREATE EXTENSION \"" + r.Needs + "\""
	}
	switch {
	case compute == "":
		compute = "(SQL has no short way)"
	case strings.ContainsFunc(compute, func(r rune) bool { return !unicode.IsPrint(r) }):
		compute = "(it holds characters that cannot be printed: --json has it)"
	}
	line("compute", compute)
	line("take", r.Take[0]+" -- until the end of the transaction")
	line("", r.Take[1]+" -- until pg_advisory_unlock or the end of the session")
	if r.Reserved != "" {
		line("reserved", p.Style.Yellow(r.Reserved+" locks this very id"))
	}
	c.printHolders(p, v, line)
	return nil
}

func (c *Command) printHolders(p *cli.Program, v *inspect.View, line func(name, text string)) {
	switch {
	case v == nil && !c.Given():
		line("held by", "(no server is named: --dsn, DATABASE_URL or PGHOST)")
	case v == nil:
		line("held by", "(no server was asked)")
	case len(v.Locks) == 0:
		line("held by", "nobody in database "+terminal.OneLine(v.Server.Database))
	default:
		line("held by", "in database "+terminal.OneLine(v.Server.Database))
		p.Printf("\n%s\n", strings.Join(look.Locks(v, p), "\n"))
	}
	if v != nil {
		for _, u := range v.Unseen {
			p.Printf("%s\n", p.Style.Yellow("not seen: "+terminal.OneLine(u)))
		}
	}
}

// list prints the schemes.
func (c *Command) list(p *cli.Program, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %s after --schemes", terminal.OneLine(args[0]))
	}
	t := &terminal.Table{Head: []string{"SCHEME", "MADE OF", "WHOSE"}}
	for _, s := range schemes() {
		t.Add(terminal.Painted(strings.Join(s.names, ", "), p.Style.Bold), terminal.Plain(s.form()), terminal.Plain(s.whose))
	}
	lines, _, _ := t.Lines(p.Style, 0)
	for _, line := range lines {
		p.Printf("%s\n", line)
	}
	return nil
}

// row is for schemes whose locks are rows, and not advisory locks.
func (c *Command) row(p *cli.Program, s scheme, args []string) error {
	id, err := s.row(args)
	if err != nil {
		return err
	}
	sql := "SELECT * FROM INT_LOCK WHERE LOCK_KEY = " + server.QuoteText(id) + ";"
	if c.json {
		return p.JSON(map[string]string{"key": args[0], "scheme": s.names[0], "lock_key": id, "look": sql})
	}
	p.Printf("%s %s\n%s %s\n%s %s\n", p.Style.Dim("key      "), p.Style.Bold(terminal.OneLine(args[0])),
		p.Style.Dim("LOCK_KEY "), id, p.Style.Dim("held by  "), sql+" -- a row, not an advisory lock")
	return nil
}
