package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/lockkey/compat"
)

// key shows the lock that a name stands for.
type key struct {
	target
	scheme  string
	schemes bool
	offline bool
	json    bool
}

func (*key) usage() usage {
	return usage{
		name: "key", args: "PART…", atMost: -1, summary: "the lock id of a name, its SQL, and who holds it now",
		details: `
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

func (c *key) flags(set *flag.FlagSet) {
	c.target.flags(set)
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

	Database string         `json:"database,omitempty"` // where it was looked who holds it
	Locks    []inspect.Lock `json:"locks,omitempty"`
	Unseen   []string       `json:"unseen,omitempty"`
}

func (c *key) run(ctx context.Context, p *program, args []string) error {
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
	if c.offline || !c.given() {
		return c.print(p, r, nil)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	v, err := c.look(ctx, k, r)
	if printed := c.print(p, r, v); printed != nil {
		return printed
	}
	return err
}

func reportOf(s scheme, k lockkey.Key, args []string) *keyReport {
	r := &keyReport{Key: k.String(), Scheme: s.names[0], Arguments: ids(k)}
	if hi, lo, ok := k.Pair(); ok {
		r.Space, r.ClassID, r.ObjectID = 2, uint32(hi), uint32(lo)
	} else {
		id, _ := k.Int64()
		r.Space, r.ClassID, r.ObjectID = 1, uint32(id>>32), uint32(id)
	}
	if sql := s.compute(k, args); sql != "" {
		r.Compute, r.Needs = "SELECT "+sql+";", s.needs
	}
	for _, function := range []string{"pg_advisory_xact_lock", "pg_advisory_lock"} {
		r.Take = append(r.Take, "SELECT "+function+"("+r.Arguments+");")
	}
	r.Reserved, _ = compat.Reserved(k)
	return r
}

// look asks the server who holds the key, and notes it in r.
func (c *key) look(ctx context.Context, k lockkey.Key, r *keyReport) (*inspect.View, error) {
	db, err := c.open(ctx, "key")
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }() // it has only been asked
	v, err := snapshot(ctx, db, inspect.Limit(math.MaxInt32), inspect.Known(k))
	if err != nil {
		return nil, err
	}
	id, _ := k.Int64()
	if hi, lo, ok := k.Pair(); ok {
		id = int64(hi)<<32 | int64(uint32(lo))
	}
	v.Locks = slices.DeleteFunc(v.Locks, func(l inspect.Lock) bool {
		return l.Kind != inspect.Advisory || int(l.Space) != r.Space || l.ID != id
	})
	r.Database, r.Locks, r.Unseen = v.Server.Database, v.Locks, v.Unseen
	return v, nil
}

func (c *key) print(p *program, r *keyReport, v *inspect.View) error {
	if c.json {
		return p.json(r)
	}
	line := func(name, text string) { p.printf("%s %s\n", p.style.dim(fmt.Sprintf("%-9s", name)), text) }
	line("key", p.style.bold(r.Key))
	if r.Scheme != gormlockScheme {
		line("scheme", r.Scheme)
	}
	line("id", r.Arguments)
	line("pg_locks", fmt.Sprintf("classid = %d AND objid = %d AND objsubid = %d", r.ClassID, r.ObjectID, r.Space))
	compute := r.Compute
	if r.Needs != "" && compute != "" {
		compute += " -- CREATE EXTENSION \"" + r.Needs + "\""
	}
	if compute == "" {
		compute = "(SQL has no short way)"
	}
	line("compute", compute)
	line("take", r.Take[0]+" -- until the end of the transaction")
	line("", r.Take[1]+" -- until pg_advisory_unlock or the end of the session")
	if r.Reserved != "" {
		line("reserved", p.style.yellow(r.Reserved+" locks this very id"))
	}
	c.printHolders(p, v, line)
	return nil
}

func (c *key) printHolders(p *program, v *inspect.View, line func(name, text string)) {
	switch {
	case v == nil && !c.given():
		line("held by", "(no server is named: --dsn, DATABASE_URL or PGHOST)")
	case v == nil:
		line("held by", "(no server was asked)")
	case len(v.Locks) == 0:
		line("held by", "nobody in database "+oneLine(v.Server.Database))
	default:
		line("held by", "in database "+oneLine(v.Server.Database))
		p.printf("\n%s\n", strings.Join(locks(v, p.style).lines(p.style, p.width()), "\n"))
	}
	if v != nil {
		for _, u := range v.Unseen {
			p.printf("%s\n", p.style.yellow("not seen: "+oneLine(u)))
		}
	}
}

// list prints the schemes.
func (c *key) list(p *program, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("--schemes takes no %s", oneLine(args[0]))
	}
	t := &table{head: []string{"SCHEME", "MADE OF", "WHOSE"}}
	for _, s := range schemes() {
		t.add(cell{strings.Join(s.names, ", "), p.style.bold}, plain(s.form()), plain(s.whose))
	}
	for _, line := range t.lines(p.style, 0) {
		p.printf("%s\n", line)
	}
	return nil
}

// row is for the scheme whose keys are no advisory locks but a row.
func (c *key) row(p *program, s scheme, args []string) error {
	id, err := s.row(args)
	if err != nil {
		return err
	}
	sql := "SELECT * FROM INT_LOCK WHERE LOCK_KEY = " + quoteText(id) + ";"
	if c.json {
		return p.json(map[string]string{"key": args[0], "scheme": s.names[0], "lock_key": id, "look": sql})
	}
	p.printf("%s %s\n%s %s\n%s %s\n", p.style.dim("key      "), p.style.bold(oneLine(args[0])),
		p.style.dim("LOCK_KEY "), id, p.style.dim("held by  "), sql+" -- a row, not an advisory lock")
	return nil
}
