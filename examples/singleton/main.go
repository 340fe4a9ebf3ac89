// Singleton runs one program several times, of which one works and the others stand by. The one that works holds a
// session lock; when it dies, is cut off or steps down, another takes over.
//
//	go -C examples run ./singleton
//
// It starts processes, ends the leader in three ways, and shows who leads next and how soon. node.go is the part to
// copy.
//
// It runs on the server of DATABASE_URL or GORMLOCK_TEST_DSN, or, where neither is set, on a throw-away server.
package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/gormlock/gormlock/examples/internal/place"
)

// What a node is told by its environment.
const (
	nodeName = "SINGLETON_NODE"
	nodeDSN  = "SINGLETON_DSN"
	nodeTask = "SINGLETON_TASK"
)

func main() {
	place.Main("singleton", func(ctx context.Context) error { return program(ctx, os.Stdout) })
}

// program is the whole program: a node where the environment says so, else the one that starts them.
func program(ctx context.Context, out io.Writer) error {
	if name := os.Getenv(nodeName); name != "" {
		return node(ctx, out, name, os.Getenv(nodeDSN), os.Getenv(nodeTask))
	}
	return show(ctx, out, 3, time.Second)
}

// show starts nodes, lets each leader lead for a term, takes the leader away in several ways and checks that there is a next one, and never two.
func show(ctx context.Context, out io.Writer, nodes int, term time.Duration) (err error) {
	dsn, stop, err := place.Server(ctx, place.Given())
	if err != nil {
		return err
	}
	defer func() { _ = stop() }() // nothing on it is needed any more
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	c := &crew{dsn: dsn, task: "nightly report " + rand.Text()[:6], out: out, began: time.Now(), events: make(chan event, 100)}
	defer c.end()
	for range nodes {
		if err := c.start(); err != nil {
			return err
		}
	}
	leader, err := c.next(ctx, "the start")
	for _, away := range takeAway {
		if err != nil {
			return err
		}
		if err := c.start(); err != nil { // for the one that will be gone
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(term):
		}
		c.say("%s", fmt.Sprintf(away.what, leader.name))
		if err := away.do(ctx, db, leader); err != nil {
			return err
		}
		leader, err = c.next(ctx, away.short)
	}
	if err != nil {
		return err
	}
	c.say("one leader after the other, and never two at once")
	return nil
}

// takeAway are the ways in which a leader ends.
var takeAway = []struct {
	what, short string
	do          func(ctx context.Context, db *sql.DB, leader *process) error
}{
	{"%s steps down (SIGTERM): it gives the lock back", "it stepped down", func(_ context.Context, _ *sql.DB, p *process) error {
		return p.cmd.Process.Signal(syscall.SIGTERM)
	}},
	{"%s is killed (kill -9): the server sees the connection end", "it was killed", func(_ context.Context, _ *sql.DB, p *process) error {
		return p.cmd.Process.Kill()
	}},
	{"%s loses its session (pg_terminate_backend): it is told, and stops working", "its session ended", func(ctx context.Context, db *sql.DB, p *process) error {
		_, err := db.ExecContext(ctx, "SELECT pg_terminate_backend($1)", p.backend)
		return err
	}},
}
