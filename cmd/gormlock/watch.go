package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gormlock/gormlock/inspect"
)

// watch is ls again and again.
type watch struct {
	target
	filter
	interval time.Duration
	looks    int

	screen    bool             // it draws on a terminal
	suspended <-chan os.Signal // by Ctrl-Z
	gone      time.Time        // since when the server does not answer
}

func (*watch) usage() usage {
	return usage{
		name: "watch", summary: "ls, live in the terminal, until Ctrl-C",
		details: `
Shows what ls shows, again every --interval. On a terminal it redraws the screen; into a
pipe it writes one table after the other, each below a line with the time. When the server
goes away it says so, tries again until it is back, and says that too. Ctrl-C ends it.

Examples
  gormlock watch --waiting
  gormlock watch --interval 10s --waiting >>waits.log`,
		exits: [3]string{0: "ended by Ctrl-C, or after --count looks", 2: "an error: the server did not answer the first look, or the last of --count"},
	}
}

func (c *watch) flags(set *flag.FlagSet) {
	c.target.flags(set)
	c.filter.flags(set)
	set.DurationVar(&c.interval, "interval", time.Second, "how often to look, a `DURATION`")
	set.IntVar(&c.looks, "count", 0, "end after `N` looks; 0 for never")
}

func (c *watch) run(ctx context.Context, p *program, _ []string) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.interval < 10*time.Millisecond || c.looks < 0 {
		return fmt.Errorf("--interval is at least 10ms, and --count not negative")
	}
	db, err := c.open(ctx, "watch")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // it has only been asked
	db.SetMaxOpenConns(1)
	if c.screen = isTerminal(p.stdout); c.screen {
		var stop func()
		c.suspended, stop = suspensions()
		defer stop()
		p.printf(enterScreen)
		defer func() {
			p.printf(leaveScreen)
			_ = p.out.Flush() // the terminal may be gone
		}()
	}
	err = c.loop(ctx, p, db)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil // asked to end
	}
	return err
}

func (c *watch) loop(ctx context.Context, p *program, db *sql.DB) error {
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
		if err := p.out.Flush(); err != nil {
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

// suspend gives the terminal back while the shell has it.
func (c *watch) suspend(p *program) error {
	p.printf(leaveScreen)
	if err := errors.Join(p.out.Flush(), suspend()); err != nil {
		return err
	}
	p.printf(enterScreen)
	return nil
}

// look bounds the wait for a server that went silent.
func (c *watch) look(ctx context.Context, db *sql.DB) (*inspect.View, error) {
	ctx, cancel := context.WithTimeout(ctx, max(dialTimeout, c.interval))
	defer cancel()
	v, err := snapshot(ctx, db, c.options()...)
	if err != nil {
		return nil, fmt.Errorf("the server is gone: %w", err)
	}
	c.apply(v)
	return v, nil
}

// draw fills the screen: the last view there was, and above it what is the matter.
func (c *watch) draw(p *program, v *inspect.View, err error) {
	columns, lines := size(p.stdout)
	frame := append([]string{c.status(p, err), ""}, c.report(v, p)...)
	if len(frame) > lines-1 {
		more := len(frame) - lines + 2
		frame = append(frame[:max(lines-2, 0)], p.style.dim(fmt.Sprintf("%d more lines below", more)))
	}
	p.printf(fromTheTop)
	for _, line := range frame {
		p.printf("%s%s\r\n", clip(line, columns), clearLine)
	}
	p.printf(clearBelow)
}

func (c *watch) status(p *program, err error) string {
	now := time.Now()
	line := fmt.Sprintf("%s every %s, Ctrl-C ends", now.Format(time.TimeOnly), c.interval)
	if err == nil {
		c.gone = time.Time{}
		return p.style.dim(line)
	}
	if c.gone.IsZero() {
		c.gone = now
	}
	return p.style.red(fmt.Sprintf("%s %s: trying again, below is what was seen %s ago", now.Format(time.TimeOnly), oneLine(err.Error()), span(now.Sub(c.gone))))
}

// write adds to a stream: every table, and a failure when it begins and when it ends.
func (c *watch) write(p *program, v *inspect.View, err error) {
	now := time.Now()
	stamp := now.Format(time.DateTime)
	switch {
	case err != nil && c.gone.IsZero():
		c.gone = now
		p.printf("%s %s: trying again\n\n", stamp, oneLine(err.Error()))
	case err == nil:
		if !c.gone.IsZero() {
			p.printf("%s the server is back after %s\n\n", stamp, span(now.Sub(c.gone)))
			c.gone = time.Time{}
		}
		p.printf("%s\n%s\n\n", stamp, strings.Join(c.report(v, p), "\n"))
	}
}

// clip cuts a line to so many columns. Colours take none.
func clip(line string, columns int) string {
	width, escape := 0, false
	for at, r := range line {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		case width == columns:
			return line[:at] + "\x1b[0m"
		default:
			width++
		}
	}
	return line
}
