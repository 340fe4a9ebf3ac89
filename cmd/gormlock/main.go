// Command gormlock shows who holds which lock in a PostgreSQL database, who waits for
// whom, and what to do about it. `gormlock help` lists what it can do.
//
// Exit codes: 0 all is well, 1 something was found or not confirmed, 2 an error, which
// is one line on standard error.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/cli"
	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	p := &cli.Program{In: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Args: os.Args[1:]}
	p.Out = bufio.NewWriter(p.Stdout)
	p.Style = terminal.StyleOf(p.Stdout)
	code := run(ctx, p, os.Args[1:])
	stop()
	os.Exit(code)
}

// The exit codes.
const (
	exitFine  = 0
	exitFound = 1
	exitError = 2
)

// run is main without the process.
func run(ctx context.Context, p *cli.Program, args []string) (code int) {
	err := dispatch(ctx, p, args)
	if flushed := p.Out.Flush(); flushed != nil && err == nil {
		err = fmt.Errorf("standard output: %w", flushed)
	}
	switch {
	case err == nil, errors.Is(err, cli.ErrHelp):
		return exitFine
	case errors.Is(err, cli.ErrFound):
		return exitFound
	case errors.Is(err, cli.ErrNotDone):
		p.Complain(err)
		return exitFound
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		p.Complain(errors.New("interrupted"))
		return exitError
	}
	p.Complain(err)
	return exitError
}
