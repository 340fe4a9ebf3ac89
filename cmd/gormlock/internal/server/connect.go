// Package server finds the server that a command works on, and describes connection errors in one line. It reveals no part of a connection string,
// and no password in a statement.
package server

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/gormlock/gormlock/cmd/gormlock/internal/terminal"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/internal/otherdb"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

const (
	// DialTimeout limits a connection attempt if the connection string does not.
	DialTimeout = 10 * time.Second
	// AskTimeout limits a question to the server.
	AskTimeout = time.Minute
	// Matters is more than the number of locks that ever wait or are waited for. These come first in a snapshot.
	Matters = 20_000
)

// Target is the server a command works on.
type Target struct {
	DSN string
}

// Flags declares --dsn.
func (t *Target) Flags(set *flag.FlagSet) {
	set.StringVar(&t.DSN, "dsn", "", "the `DSN` of the server: a URL or host=… dbname=…")
}

// Given reports whether the user named a server in any way.
func (t *Target) Given() bool {
	for _, variable := range []string{"DATABASE_URL", "PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGSERVICE"} {
		if os.Getenv(variable) != "" {
			return true
		}
	}
	return t.DSN != ""
}

// source is the connection string, and where it came from.
func (t *Target) source() (dsn, from string) {
	if t.DSN != "" {
		return t.DSN, "--dsn"
	}
	if dsn := os.Getenv("DATABASE_URL"); dsn != "" {
		return dsn, "DATABASE_URL"
	}
	return "", "the PG* variables"
}

// ExecModeGiven reports whether the connection string says how statements are sent.
func (t *Target) ExecModeGiven() bool {
	dsn, _ := t.source()
	return strings.Contains(dsn, "default_query_exec_mode")
}

// Config says how to connect. Its error contains no part of the connection string.
func (t *Target) Config(command string) (*pgx.ConnConfig, error) {
	dsn, from := t.source()
	if problem := ambiguous(dsn); problem != "" {
		return nil, fmt.Errorf("%s: %s", from, problem)
	}
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", from, parseProblem(dsn, err))
	}
	for name := range c.RuntimeParams {
		if !otherdb.IsKeyword(name) { // pgx would send it, perhaps with a password, to the server that the environment names
			return nil, fmt.Errorf("%s: %s", from, noConnString)
		}
	}
	c.RuntimeParams["application_name"] = "gormlock-cli " + command
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = DialTimeout
	}
	if !t.ExecModeGiven() {
		c.DefaultQueryExecMode = pgx.QueryExecModeExec // prepares nothing, because a pooler may use another server connection for each statement
	}
	return c, nil
}

// Open returns a pool to the server, with one working connection.
func (t *Target) Open(ctx context.Context, command string) (*sql.DB, error) {
	c, err := t.Config(command)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*c)
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close() // nothing was done with it
		return nil, t.unreachable(ctx, c, err)
	}
	return db, nil
}

// Ask runs ask on a pool to the server, within [AskTimeout].
func (t *Target) Ask(ctx context.Context, command string, ask func(ctx context.Context, db *sql.DB) error) error {
	ctx, cancel := context.WithTimeout(ctx, AskTimeout)
	defer cancel()
	db, err := t.Open(ctx, command)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // nothing was written
	return ask(ctx, db)
}

// Snapshot returns what the server says about its locks, without the passwords in statements.
func Snapshot(ctx context.Context, db *sql.DB, opts ...inspect.Option) (*inspect.View, error) {
	v, err := inspect.Snapshot(ctx, db, append(opts, inspect.Timeout(AskTimeout))...)
	if err != nil {
		return nil, ErrorOf(err)
	}
	for _, s := range v.Sessions {
		s.Query = Masked(s.Query)
	}
	return v, nil
}

// Connect makes one connection to the server.
func (t *Target) Connect(ctx context.Context, c *pgx.ConnConfig) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return nil, t.unreachable(ctx, c, err)
	}
	return conn, nil
}

// unreachable says which server did not answer, and why.
func (t *Target) unreachable(ctx context.Context, c *pgx.ConnConfig, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	_, from := t.source()
	text := fmt.Sprintf("cannot connect to %s as %s, database %s (from %s): %s",
		Address(&c.Config), orDefault(c.User), orDefault(c.Database), from, dialProblem(err))
	if !t.Given() {
		text += ": name a server with --dsn, DATABASE_URL or PGHOST"
	}
	return errors.New(text)
}

func orDefault(name string) string {
	if name == "" {
		return "(its default)"
	}
	return name
}

// Address names each server of a configuration once.
func Address(c *pgconn.Config) string {
	all := []string{}
	add := func(host string, port uint16) {
		_, a := pgconn.NetworkAddress(host, port)
		if len(all) == 0 || all[len(all)-1] != a {
			all = append(all, a)
		}
	}
	add(c.Host, c.Port)
	for _, f := range c.Fallbacks {
		add(f.Host, f.Port)
	}
	return strings.Join(all, ", ")
}

// dialProblem is the last error, which is the one that matters: with several servers, or after a try with encryption, there are earlier ones.
func dialProblem(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return Refusal(refused)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	for {
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			list := many.Unwrap()
			if len(list) == 0 {
				return err.Error()
			}
			err = list[len(list)-1]
			continue
		}
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// Refusal is the text of a server's error, with the cure if this program knows one.
func Refusal(e *pgconn.PgError) string {
	text := fmt.Sprintf("%s (%s)", e.Message, e.Code)
	switch {
	case e.Code == sqlstate.UndefinedObject && strings.Contains(e.Message, "configuration parameter"):
		text += ": leave that parameter out of the connection string, it is meant for another program"
	case e.Code == sqlstate.InsufficientPrivilege && e.Hint != "":
		text += ": " + e.Hint
	}
	return text
}

// Problem is the error of a statement in one line.
func Problem(err error) string {
	var refused *pgconn.PgError
	var lost *pgconn.ConnectError
	switch {
	case errors.As(err, &refused):
		return Refusal(refused)
	case errors.As(err, &lost):
		return dialProblem(err)
	}
	return terminal.TrimPrefix(err.Error())
}

// ErrorOf is an error of the database in one line, and keeps its kind.
func ErrorOf(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer from the server in time: %w", err)
	}
	return errors.New(Problem(err))
}
