// Fencedwriter shows what no lock can prevent and a fencing token does: a holder that was paused, lost its lock
// meanwhile, wakes up, and finishes the write it had begun.
//
//	go -C examples run ./fencedwriter
//
// It plays the scene twice with two processes, of which the first is really stopped (SIGSTOP) in the middle: once with
// the lock alone, where the late write goes through, and once with the token in the write, where the database refuses
// it, although the second process has not written anything yet. writer.go is the part to copy.
//
// It runs on the server of DATABASE_URL or GORMLOCK_TEST_DSN, in a schema of its own that it drops at the end, or,
// where neither is set, on a throw-away server.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/gormlock/gormlock/examples/internal/place"
)

func main() {
	place.Main("fencedwriter", func(ctx context.Context) error { return program(ctx, os.Stdout) })
}

// program is the whole program: a writer where the environment says so, else the one that plays the scenes.
func program(ctx context.Context, out io.Writer) error {
	if os.Getenv(writerDSN) != "" {
		return writer(ctx, os.Stdin, out)
	}
	return show(ctx, out, place.Given())
}

// show plays both scenes and checks that they end as they must.
func show(ctx context.Context, out io.Writer, dsn string) (err error) {
	p, err := newPlace(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Leave()) }()
	say(out, "With the lock alone:")
	body, err := scene(out, p, "lock")
	if err != nil {
		return err
	}
	say(out, "  the report says %q: the work of the second is gone\n", body)
	if body != "the first's" {
		return fmt.Errorf("the late write should have gone through, but the report says %q", body)
	}
	say(out, "With the token in the write:")
	if body, err = scene(out, p, "token"); err != nil {
		return err
	}
	say(out, "  the report says %q", body)
	if body != "the second's" {
		return fmt.Errorf("the late write should have been refused, but the report says %q", body)
	}
	return nil
}

// scene lets the first writer be paused between its decision to write and the write.
func scene(out io.Writer, p *place.Place, guard string) (string, error) {
	first, err := start(p, guard)
	if err != nil {
		return "", err
	}
	defer first.end()
	backend, err := first.ask("acquire")
	if err != nil {
		return "", err
	}
	say(out, "  first:  holds the lock, and decides to write")
	_ = first.cmd.Process.Signal(syscall.SIGSTOP)
	say(out, "          (is stopped; the server, which hears nothing more, ends its session)")
	if err := p.DB.Exec("SELECT pg_terminate_backend(?)", backend).Error; err != nil {
		return "", err
	}

	second, err := start(p, guard)
	if err != nil {
		return "", err
	}
	defer second.end()
	if _, err := second.ask("acquire"); err != nil {
		return "", err
	}
	say(out, "  second: holds the lock")
	if guard == "lock" {
		if err := write(out, "second", second); err != nil {
			return "", err
		}
	}
	_ = first.cmd.Process.Signal(syscall.SIGCONT)
	if err := write(out, "first", first); err != nil {
		return "", err
	}
	if guard == "token" {
		if err := write(out, "second", second); err != nil {
			return "", err
		}
	}
	told, err := first.ask("held?")
	if err != nil {
		return "", err
	}
	say(out, "  first:  learns by and by: %s", told)
	return reported(p)
}

func write(out io.Writer, name string, p *process) error {
	answer, err := p.ask("write the " + name + "'s")
	say(out, "  %-7s writes: %s", name+":", answer)
	return err
}

func say(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format+"\n", args...)
}
