package look

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/cli"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/server"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
	"github.com/gormlock/gormlock/inspect"
)

// Watch is ls, repeated.
type Watch struct {
	server.Target
	filter
	interval time.Duration
	looks    int

	screen    bool             // it draws on a terminal
	suspended <-chan os.Signal // by Ctrl-Z
	gone      time.Time        // when the server stopped answering
}

// Usage implements [cli.Command].
func (*Watch) Usage() cli.Usage {
	return cli.Usage{
		Name: "watch", Summary: "ls, live in the terminal, until Ctrl-C",
		Details: `
Shows what ls shows, again every --interval. On a terminal it redraws the screen; into a
pipe it writes one table after the other, each below a line with the time. When the server
goes away it says so, tries again until it is back, and says that too. Ctrl-C ends it.

Examples
  gormlock watch --waiting
  gormlock watch --interval 10s --waiting >>waits.log`,
		Exits: [3]string{0: "ended by Ctrl-C, or after --count looks", 2: "an error: the server did not answer the first look, or the last of --count"},
	}
}

// Flags implements [cli.Command].
func (c *Watch) Flags(set *flag.FlagSet) {
	c.Target.Flags(set)
	c.declare(set)
	set.DurationVar(&c.interval, "interval", time.Second, "how often to look, a `DURATION`")
	set.IntVar(&c.looks, "count", 0, "end after `N` looks; 0 for never")
}

// Run implements [cli.Command].
func (c *Watch) Run(ctx context.Context, p *cli.Program, _ []string) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.interval < 10*time.Millisecond || c.looks < 0 {
		return fmt.Errorf("--interval must be at least 10ms, and --count must not be negative")
	}
	db, err := c.Open(ctx, "watch")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // nothing was written
	db.SetMaxOpenConns(1)
	if c.screen = terminal.Is(p.Stdout); c.screen {
		var stop func()
		c.suspended, stop = terminal.Suspensions()
		defer stop()
		p.Printf(terminal.EnterScreen)
		defer func() {
			p.Printf(terminal.LeaveScreen)
			_ = p.Out.Flush() // the terminal may be gone
		}()
	}
	err = c.loop(ctx, p, db)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil // it was told to end
	}
	return err
}

func (c *Watch) loop(ctx context.Context, p *cli.Program, db *sql.DB) error {
	tick := time.NewTicker(c.interval)
	defer tick.Stop()
	var last *inspect.View
	for n := 1; ; n++ {
		v, err := c.look(ctx, db)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && n == 1 {
			return err
		}
		if c.screen {
			if v != nil {
				last = v
			}
			c.draw(p, last, err)
		} else {
			c.write(p, v, err)
		}
		if err := p.Out.Flush(); err != nil {
			return fmt.Errorf("standard output: %w", err)
		}
		if n == c.looks {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.suspended:
			if err := c.suspend(p); err != nil {
				return err
			}
		case <-tick.C:
		}
	}
}

// suspend gives the terminal back while the program is suspended.
func (c *Watch) suspend(p *cli.Program) error {
	p.Printf(terminal.LeaveScreen)
	if err := errors.Join(p.Out.Flush(), terminal.Suspend()); err != nil {
		return err
	}
	p.Printf(terminal.EnterScreen)
	return nil
}

// look limits the wait for a silent server.
func (c *Watch) look(ctx context.Context, db *sql.DB) (*inspect.View, error) {
	ctx, cancel := context.WithTimeout(ctx, max(server.DialTimeout, c.interval))
	defer cancel()
	v, err := server.Snapshot(ctx, db, c.options()...)
	if err != nil {
		return nil, fmt.Errorf("the server is gone: %w", err)
	}
	c.apply(v)
	return v, nil
}

// draw fills the screen: the last view, with a status line on top.
func (c *Watch) draw(p *cli.Program, v *inspect.View, err error) {
	columns, lines := terminal.Size(p.Stdout)
	frame := append([]string{c.status(p, err)}, c.summary(v, p)...) // on top, so that no table pushes it off the screen
	frame = append(append(frame, ""), tables(v, p)...)
	if len(frame) > lines-1 {
		more := len(frame) - lines + 2
		frame = append(frame[:max(lines-2, 0)], p.Style.Dim(fmt.Sprintf("%d more lines below", more)))
	}
	p.Printf(terminal.FromTheTop)
	for _, line := range frame {
		p.Printf("%s%s\r\n", terminal.Clip(line, columns), terminal.ClearLine)
	}
	p.Printf(terminal.ClearBelow)
}

func (c *Watch) status(p *cli.Program, err error) string {
	now := time.Now()
	line := fmt.Sprintf("%s every %s, Ctrl-C ends", now.Format(time.TimeOnly), c.interval)
	if err == nil {
		c.gone = time.Time{}
		return p.Style.Dim(line)
	}
	if c.gone.IsZero() {
		c.gone = now
	}
	return p.Style.Red(fmt.Sprintf("%s %s: trying again, below is what was seen %s ago", now.Format(time.TimeOnly), terminal.OneLine(err.Error()), terminal.Span(now.Sub(c.gone))))
}

// write appends to a stream: every table, and each failure when it begins and ends.
func (c *Watch) write(p *cli.Program, v *inspect.View, err error) {
	now := time.Now()
	stamp := now.Format(time.DateTime)
	switch {
	case err != nil && c.gone.IsZero():
		c.gone = now
		p.Printf("%s %s: trying again\n\n", stamp, terminal.OneLine(err.Error()))
	case err == nil:
		if !c.gone.IsZero() {
			p.Printf("%s the server is back after %s\n\n", stamp, terminal.Span(now.Sub(c.gone)))
			c.gone = time.Time{}
		}
		p.Printf("%s\n%s\n\n", stamp, strings.Join(c.report(v, p), "\n"))
	}
}
