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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	p := &program{in: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	p.out = bufio.NewWriter(p.stdout)
	p.style = styleOf(p.stdout)
	code := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// program is one run.
type program struct {
	in, stdout, stderr *os.File
	out                *bufio.Writer // to stdout
	style              style
}

// The exit codes.
const (
	exitFine  = 0
	exitFound = 1
	exitError = 2
)

var (
	// errFound says that what the command looks for is there. It was printed.
	errFound = errors.New("found")
	// errNotDone says that the user, or the state of the thing, did not confirm it.
	errNotDone = errors.New("not done")
	// errHelp says that help was asked for. It was printed.
	errHelp = errors.New("help")
)

// run is main without the process.
func (p *program) run(ctx context.Context, args []string) (code int) {
	err := p.dispatch(ctx, args)
	if flushed := p.out.Flush(); flushed != nil && err == nil {
		err = fmt.Errorf("standard output: %w", flushed)
	}
	switch {
	case err == nil, errors.Is(err, errHelp):
		return exitFine
	case errors.Is(err, errFound):
		return exitFound
	case errors.Is(err, errNotDone):
		p.complain(err)
		return exitFound
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		p.complain(errors.New("interrupted"))
		return exitError
	}
	p.complain(err)
	return exitError
}

// complain writes one line to standard error.
func (p *program) complain(err error) {
	_, _ = fmt.Fprintln(p.stderr, "gormlock: "+oneLine(trimPrefix(err.Error())))
}

// printf writes to standard output, which keeps an error until the end.
func (p *program) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(p.out, format, args...)
}
