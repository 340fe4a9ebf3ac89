package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// node leads whenever it can, until ctx ends.
func node(ctx context.Context, out io.Writer, name, dsn, task string) error {
	m, err := sessionlock.Open(ctx, dsn, sessionlock.Owner(name))
	if err != nil {
		return err
	}
	defer func() { _ = m.Close(context.WithoutCancel(ctx)) }() // what it holds goes with its connection
	for ctx.Err() == nil {
		l, err := m.Acquire(ctx, lockkey.Of("singleton", task))
		if err != nil {
			break // ctx has ended: everything else is waited for
		}
		tell(out, "leads %d", l.PID())
		err = lead(ctx, l)
		tell(out, "stops %v", err)
	}
	return nil
}

// lead works until the lock is lost or ctx ends, in which case it gives the lock back.
func lead(ctx context.Context, l *sessionlock.Lock) error {
	working, stop := l.Bind(ctx)
	defer stop()
	work(working)
	if lost := l.Err(); lost != nil {
		return lost
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(errors.New("asked to step down"), l.Release(bounded))
}

// work is what only one may do at a time. It ends with its ctx: a step that must not happen after the lock is lost
// needs more than that, see examples/fencedwriter.
func work(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func tell(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format+"\n", args...) // a node that nobody listens to goes on
}
