package look

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/cli"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/halt"
)

// verb is what end does to a process.
type verb struct {
	name, summary, details, asks, done string
}

var (
	cancelling = verb{
		name: "cancel", summary: "end the statement a process runs", asks: "cancel this statement", done: "the statement has ended",
		details: `
Shows what the process is doing and who waits for it, asks, and ends the statement: its
program gets an error (57014), its session goes on, and a transaction it is in can only
be rolled back. A process that runs no statement has nothing to cancel
and is left alone: terminate ends its transaction or session, and frees its locks.`,
	}
	terminating = verb{
		name: "terminate", summary: "end the session of a process, and free its locks", asks: "end this session", done: "the session has ended",
		details: `
Shows what the process is doing and who waits for it, asks, and ends the session: its
transaction is rolled back and its locks are freed, session locks too. Its program may
still believe that it holds them until it talks to the server again, or until its session
lock manager hears of it. Make sure that it stops, or that its writes are fenced.`,
	}
)

// Cancel is the command that ends a statement.
func Cancel() *End { return &End{verb: cancelling} }

// Terminate is the command that ends a session.
func Terminate() *End { return &End{verb: terminating} }

// End is the commands cancel and terminate.
type End struct {
	verb verb
	server.Target
	yes  bool
	wait time.Duration
}

// Usage implements [cli.Command].
func (c *End) Usage() cli.Usage {
	return cli.Usage{
		Name: c.verb.name, Args: "PID", AtLeast: 1, AtMost: 1, Summary: c.verb.summary, Details: c.verb.details,
		Exits: [3]string{
			0: c.verb.done,
			1: "not confirmed, or nothing to end, or it has not ended within --wait",
			2: "an error: no such process, no permission, this program's own process",
		},
	}
}

// Flags implements [cli.Command].
func (c *End) Flags(set *flag.FlagSet) {
	c.Target.Flags(set)
	set.BoolVar(&c.yes, "yes", false, "do not ask")
	set.DurationVar(&c.wait, "wait", 5*time.Second, "how long to wait for the end, a `DURATION`")
}

// Run implements [cli.Command].
func (c *End) Run(ctx context.Context, p *cli.Program, args []string) error {
	pid, err := pidOf(args[0])
	if err != nil {
		return err
	}
	if c.wait <= 0 {
		return fmt.Errorf("--wait %s leaves no time", c.wait)
	}
	db, err := c.Open(ctx, c.verb.name)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // nothing was written
	db.SetMaxOpenConns(1)             // so its own process stays the same
	b, err := backendAt(ctx, db, pid)
	if err != nil {
		return err
	}
	if err := c.refuse(b); err != nil {
		return err
	}
	if err := c.show(ctx, p, db, b); err != nil {
		return err
	}
	if err := c.nothingToCancel(b); err != nil {
		return err
	}
	if err := c.confirm(ctx, p); err != nil {
		return err
	}
	return c.signal(ctx, p, db, b)
}

// refuse returns an error for processes that must not be ended.
func (c *End) refuse(b *backend) error {
	switch {
	case b.own:
		return fmt.Errorf("%d is the process that answers this very command", b.PID)
	case !b.Hidden && b.kind != "client backend" && !strings.Contains(b.kind, "worker"):
		return fmt.Errorf("%d is the %s, a process of the server itself", b.PID, b.kind)
	}
	return nil
}

// nothingToCancel returns an error if there is no statement, or none can be seen.
func (c *End) nothingToCancel(b *backend) error {
	switch {
	case c.verb != cancelling || b.Hidden || halt.Runs(b.State):
		return nil
	case b.State == "disabled":
		return fmt.Errorf("%w: whether %d runs a statement is not shown, as track_activities is off for it: SELECT pg_cancel_backend(%d) cancels "+
			"one if there is one, gormlock terminate %d ends its session, and frees its locks", cli.ErrNotDone, b.PID, b.PID, b.PID)
	}
	return fmt.Errorf("%w: %d runs no statement: gormlock terminate %d ends its transaction or session, and frees its locks", cli.ErrNotDone, b.PID, b.PID)
}

// show prints what the process does, what it holds and who waits for it.
func (c *End) show(ctx context.Context, p *cli.Program, db *sql.DB, b *backend) error {
	v, err := server.Snapshot(ctx, db, inspect.Limit(server.Matters))
	if err != nil {
		return err
	}
	if seen := v.Session(b.PID); seen != nil && seen.Started.Equal(b.Started) {
		b.Doing = seen.Doing
	}
	p.Printf("%s\n", p.Style.Bold(describe(&b.Session, b.now)))
	if b.database != "" {
		p.Printf("  in database %s", terminal.OneLine(b.database))
		if b.Client != "" {
			p.Printf(", from %s", b.Client)
		}
		p.Printf("\n")
	}
	if text := statement(&b.Session); text != "" {
		p.Printf("  %s\n", text)
	}
	var held []string
	for _, l := range v.Locks {
		if l.PID == b.PID && l.Granted && l.Kind == inspect.Advisory {
			held = append(held, terminal.OneLine(l.Key))
		}
	}
	if len(held) > 0 {
		const shown = 5
		more := ""
		if len(held) > shown {
			more = fmt.Sprintf(" and %s more", terminal.Thousands(int64(len(held)-shown)))
			if v.Totals.Cut > 0 {
				more = " and many more"
			}
		}
		p.Printf("  holds %s%s\n", strings.Join(held[:min(len(held), shown)], ", "), more)
	}
	if waiters := behind(v, b.PID); len(waiters) > 0 {
		p.Printf("  %s behind it: %s\n", waits(len(waiters), ""), pidList(waiters))
	}
	return nil
}

func (c *End) confirm(ctx context.Context, p *cli.Program) error {
	if c.yes {
		return nil
	}
	p.Printf("%s? [y/N] ", c.verb.asks)
	if err := p.Out.Flush(); err != nil {
		return err
	}
	answer := make(chan string, 1)
	go func() { // ends with the program: a read from a terminal cannot be interrupted
		line, err := bufio.NewReader(p.In).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			line = ""
		}
		answer <- line
	}()
	select {
	case <-ctx.Done():
		p.Printf("\n")
		return fmt.Errorf("%w: interrupted", cli.ErrNotDone)
	case line := <-answer:
		if !terminal.Is(p.In) {
			p.Printf("\n") // a terminal shows this by itself
		}
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return nil
		}
		return fmt.Errorf("%w: not confirmed, nothing was ended; --yes skips the question", cli.ErrNotDone)
	}
}

// signal ends exactly what was shown. It spares a process that got the same number since then, or a later statement.
func (c *End) signal(ctx context.Context, p *cli.Program, db *sql.DB, b *backend) error {
	seen, end := halt.Seen{PID: b.PID, Started: b.Started}, halt.Session
	if c.verb == cancelling {
		seen.Statement, end = b.StateSince, halt.Statement
	}
	switch outcome, err := end(ctx, db, seen); {
	case err != nil:
		return server.ErrorOf(err)
	case outcome == halt.Gone:
		return fmt.Errorf("%w: %d has ended", cli.ErrNotDone, b.PID)
	case outcome != halt.Asked:
		return fmt.Errorf("%w: %d runs something else by now, or nothing", cli.ErrNotDone, b.PID)
	case c.verb == cancelling && b.Hidden:
		return fmt.Errorf("%w, as far as this role sees: %d was told to cancel what it runs, if anything; what it does is hidden: "+
			"GRANT pg_read_all_stats to the role", cli.ErrNotDone, b.PID)
	}
	return c.await(ctx, p, db, seen)
}

// await waits until the statement or session has ended.
func (c *End) await(ctx context.Context, p *cli.Program, db *sql.DB, seen halt.Seen) error {
	late := time.After(c.wait)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		on, err := seen.GoesOn(ctx, db)
		if err != nil {
			return server.ErrorOf(err)
		}
		if !on {
			p.Printf("%s\n", p.Style.Green(c.verb.done))
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return fmt.Errorf("%w: %d was told to end and has not within %s: gormlock why %d shows what it does", cli.ErrNotDone, seen.PID, c.wait, seen.PID)
		case <-tick.C:
		}
	}
}
