// Package doctor is the command doctor: it looks for faults of a server and a schema that make locks fail silently.
package doctor

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/cli"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
)

// Command looks for faults that make locks fail silently.
type Command struct {
	server.Target
	json    bool
	quiet   bool
	fix     bool
	apply   bool
	observe time.Duration
	sample  int
	columns words
	ignore  words
}

// words are the values of a flag that can be given more than once, or with commas.
type words []string

func (w *words) String() string { return strings.Join(*w, ",") }

func (w *words) Set(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			*w = append(*w, word)
		}
	}
	return nil
}

// Usage implements [cli.Command].
func (*Command) Usage() cli.Usage {
	return cli.Usage{
		Name: "doctor", Args: "[DSN]", AtMost: 1, Server: true, Summary: "what makes locks fail silently in this server and schema, with the cures",
		Details: `
Checks, as the role and through the address that the program itself would use:

  pooler      whether a connection keeps its server session, or a pooler hands it on
  prepared    behind such a pooler: whether statements that pgx prepares survive it
  server      whether it is PostgreSQL, or only looks like it
  standby     whether the server is one, and so grants what its primary holds
  exclusion   on two connections, whether advisory locks exclude (one random key, given back)
  version     whether PostgreSQL is 14 to 18
  room        how full the lock table is, which all programs share
  timeouts    idle_session_timeout, idle_in_transaction_session_timeout, transaction_timeout,
              statement_timeout, lock_timeout: of this session, and set for other roles
  network     tcp_keepalives_*, tcp_user_timeout, client_connection_check_interval
  columns     version columns that are nullable, have no default, or are generated
  writes      with --observe: rows that were written and kept their version
  tables      gormlock_fence, gormlock_lease, gormlock_schedule, gormlock_once,
              gormlock_key_name: each column with its type, NOT NULL and default, the key,
              the indexes, logged, privileges

Each finding has its cure. A note is not a finding: it is about what package sessionlock sets
for its own sessions, or what is missing because nothing needs it. It changes nothing without --apply.

--fix prints the cures as SQL: statements where they are right whatever the program is, and
comments where somebody has to decide. --apply runs the statements, each in a transaction of
its own that waits 5 seconds for a lock at most, says what it ran, and looks again. That a
column is a version is a guess by its name: it is altered only if --column names it.

--observe reads rows with a version column twice, and reports those whose xmin changed and
whose version did not: a write that no holder of an older version will notice. Of a table
with more than --sample rows it reads some from random pages and some from the last ones,
and says so. Where the trigger of gormlock.VersionTrigger moves the version there is nothing
to see: observe before it is there.

Examples
  gormlock doctor
  gormlock doctor --observe 30s --column revision postgres://app@db.internal/shop
  gormlock doctor --quiet --ignore statement_timeout
  gormlock doctor --fix >cures.sql
  gormlock doctor --apply --column accounts.version`,
		Exits: [3]string{0: "nothing was found", 1: "something was found"},
	}
}

// Flags implements [cli.Command].
func (c *Command) Flags(set *flag.FlagSet) {
	c.Target.Flags(set)
	set.BoolVar(&c.json, "json", false, "JSON instead of text")
	set.BoolVar(&c.quiet, "quiet", false, "print findings only, no notes and nothing that is well")
	set.DurationVar(&c.observe, "observe", 0, "watch writes to versioned tables for this `DURATION`")
	set.IntVar(&c.sample, "sample", 10_000, "at most `N` rows of a table are watched")
	set.BoolVar(&c.fix, "fix", false, "print the cures as a script of SQL")
	set.BoolVar(&c.apply, "apply", false, "run the SQL that --fix prints, and look again")
	set.Var(&c.columns, "column", "a `NAME` of version columns, or table.column, besides version and lock_version; can be repeated")
	set.Var(&c.ignore, "ignore", "a `CHECK` whose findings are known and accepted: the name in front of it; can be repeated")
}

// Run implements [cli.Command].
func (c *Command) Run(ctx context.Context, p *cli.Program, args []string) error {
	if len(args) == 1 {
		if c.DSN != "" {
			return fmt.Errorf("the server is named twice, by --dsn and as an argument")
		}
		c.DSN = args[0]
	}
	switch {
	case c.json && c.fix:
		return fmt.Errorf("--json holds the SQL that --fix prints: give one of them")
	case c.fix && c.apply:
		return fmt.Errorf("--fix prints the SQL that --apply runs: give one of them")
	case c.quiet && c.json:
		return fmt.Errorf("--json says what --quiet leaves out: give one of them")
	}
	if c.observe < 0 || c.sample < 2 {
		return fmt.Errorf("--observe must not be negative, and --sample must be at least 2")
	}
	config, err := c.Config("doctor")
	if err != nil {
		return err
	}
	dialled, cancel := context.WithTimeout(ctx, server.AskTimeout)
	defer cancel()
	conn, err := c.Connect(dialled, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing was written
	x := &examination{Command: c, config: config, conn: conn}
	if err := x.all(ctx); err != nil {
		return server.ErrorOf(err)
	}
	x.ignoreKnown()
	if c.apply {
		if err := x.applyAndLookAgain(ctx); err != nil {
			return server.ErrorOf(err)
		}
	}
	return x.print(p)
}

// applyAndLookAgain cures what it can, and replaces the findings by those of a second look.
func (x *examination) applyAndLookAgain(ctx context.Context) error {
	ran, err := x.applyFix(ctx)
	x.applied = ran
	if err != nil || len(ran) == 0 {
		return err
	}
	before := x.findings
	x.findings = nil
	if err := x.allChecks(ctx); err != nil {
		return err
	}
	for _, f := range before {
		if f.Check == "writes" {
			x.add(f) // tables are not watched again
		}
	}
	x.ignoreKnown()
	return nil
}

// examination is one run of the doctor.
type examination struct {
	*Command
	config *pgx.ConnConfig
	conn   *pgx.Conn

	server   serverFacts
	handedOn bool // a pooler gives the server connection to other clients
	findings []finding
	applied  []applied
}

// all checks everything. An error ends it. If the role lacks a privilege for a check, that is a finding.
func (x *examination) all(ctx context.Context) error {
	if err := x.allChecks(ctx); err != nil {
		return err
	}
	if x.observe > 0 {
		return x.checkWrites(ctx)
	}
	return nil
}

// allChecks makes the checks that need no waiting.
func (x *examination) allChecks(ctx context.Context) error {
	bounded := func(check func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, server.AskTimeout)
		defer cancel()
		return check(ctx)
	}
	for _, check := range []func(context.Context) error{
		x.readServer, x.checkEngine, x.checkPrepared, x.checkVersion, x.checkRoom, x.checkTimeouts, x.checkNetwork, x.checkColumns, x.checkTables,
	} {
		err := bounded(check)
		if err != nil && x.server.Is != "" && ctx.Err() == nil && !x.conn.IsClosed() {
			x.add(finding{Check: "server", Status: note, Says: "it does not answer as PostgreSQL does: " + server.Problem(err)})
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ignoreKnown removes findings that the user ignores.
func (x *examination) ignoreKnown() {
	unknown := slices.Clone(x.ignore)
	for i := range x.findings {
		f := &x.findings[i]
		if !slices.Contains(x.ignore, f.Check) {
			continue
		}
		unknown = slices.DeleteFunc(unknown, func(name string) bool { return name == f.Check })
		if f.Status != ok {
			f.Status = ignored
		}
	}
	for _, name := range unknown {
		var checks []string
		for _, f := range x.findings {
			checks = append(checks, f.Check)
		}
		x.add(finding{Check: "ignore", Status: warning, Says: fmt.Sprintf("--ignore %s names no check%s", name, cli.DidYouMean(name, checks)),
			Cure: "leave it out, or write the name in front of a finding"})
	}
}
