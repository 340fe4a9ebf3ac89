package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// doctor looks for what makes locks lie.
type doctor struct {
	target
	json    bool
	quiet   bool
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

func (*doctor) usage() usage {
	return usage{
		name: "doctor", args: "[DSN]", atMost: 1, summary: "what in this server and schema makes locks lie, with the cures",
		details: `
Checks, as the role and through the address that the program itself would use:

  pooler      whether a connection keeps its server session, or a pooler hands it on
  standby     whether the server is one, and so grants what its primary holds
  exclusion   on two connections, whether advisory locks exclude (one random key, given back)
  version     whether PostgreSQL is 14 to 18
  room        how full the lock table is, which all programs share
  timeouts    idle_session_timeout, idle_in_transaction_session_timeout, transaction_timeout,
              statement_timeout, lock_timeout: of this session, and set for other roles
  network     tcp_keepalives_*, tcp_user_timeout, client_connection_check_interval
  columns     version columns that are nullable or have no default
  writes      with --observe: rows that were written and kept their version
  tables      gormlock_fence, gormlock_lease, gormlock_key_name: complete, logged, usable

Each finding has its cure. A note is no finding: what package sessionlock sets for its own
sessions, or what is not there because nobody needs it. It changes nothing.

--observe reads rows with a version column twice, and reports those whose xmin changed and
whose version did not: a write that no holder of an older version will notice. Of a table
with more than --sample rows it reads some from random pages and some from the last ones,
and says so. Where the trigger of gormlock.VersionTrigger moves the version there is nothing
to see: observe before it is there.

Examples
  gormlock doctor
  gormlock doctor --observe 30s --column revision postgres://app@db.internal/shop
  gormlock doctor --quiet --ignore statement_timeout`,
		exits: [3]string{0: "nothing was found", 1: "something was found"},
	}
}

func (c *doctor) flags(set *flag.FlagSet) {
	c.target.flags(set)
	set.BoolVar(&c.json, "json", false, "JSON instead of text")
	set.BoolVar(&c.quiet, "quiet", false, "print findings only, no notes and nothing that is well")
	set.DurationVar(&c.observe, "observe", 0, "watch writes to versioned tables for this `DURATION`")
	set.IntVar(&c.sample, "sample", 10_000, "at most `N` rows of a table are watched")
	set.Var(&c.columns, "column", "a `NAME` of version columns besides version and lock_version; can be repeated")
	set.Var(&c.ignore, "ignore", "a `CHECK` whose findings are well known: the name in front of it; can be repeated")
}

func (c *doctor) run(ctx context.Context, p *program, args []string) error {
	if len(args) == 1 {
		if c.dsn != "" {
			return fmt.Errorf("the server is named twice, by --dsn and as an argument")
		}
		c.dsn = args[0]
	}
	if c.observe < 0 || c.sample < 2 {
		return fmt.Errorf("--observe is not negative, and --sample at least 2")
	}
	config, err := c.config("doctor")
	if err != nil {
		return err
	}
	dialled, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := c.connect(dialled, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // it has written nothing
	x := &examination{doctor: c, config: config, conn: conn}
	if err := x.all(ctx); err != nil {
		return errorOf(err)
	}
	x.settle()
	return x.print(p)
}

// examination is one run of the doctor.
type examination struct {
	*doctor
	config *pgx.ConnConfig
	conn   *pgx.Conn

	server   serverFacts
	findings []finding
}

// all checks everything. An error ends it: what cannot be checked for want of rights is a
// finding.
func (x *examination) all(ctx context.Context) error {
	bounded := func(check func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		return check(ctx)
	}
	for _, check := range []func(context.Context) error{
		x.readServer, x.checkEngine, x.checkVersion, x.checkRoom, x.checkTimeouts, x.checkNetwork, x.checkColumns, x.checkTables,
	} {
		if err := bounded(check); err != nil {
			return err
		}
	}
	if x.observe > 0 {
		return x.checkWrites(ctx)
	}
	return nil
}

// settle takes back what the user knows.
func (x *examination) settle() {
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
		x.add(finding{Check: "ignore", Status: warning, Says: fmt.Sprintf("--ignore %s names no check%s", name, didYouMean(name, checks)),
			Cure: "leave it out, or write the name in front of a finding"})
	}
}
