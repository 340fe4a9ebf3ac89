package main

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/sessionlock"
)

// What a writer is told by its environment.
const (
	writerDSN    = "FENCEDWRITER_DSN"
	writerSchema = "FENCEDWRITER_SCHEMA"
	writerGuard  = "FENCEDWRITER_GUARD" // lock or token
)

// writer does what it is told until its input ends.
func writer(ctx context.Context, in io.Reader, out io.Writer) error {
	p := &place{dsn: os.Getenv(writerDSN), schema: os.Getenv(writerSchema)}
	config, err := p.config()
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*config)
	defer func() { _ = db.Close() }()
	m, err := sessionlock.OpenConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close(ctx) }()

	var lock *sessionlock.Lock
	for lines := bufio.NewScanner(in); lines.Scan(); {
		order, text, _ := strings.Cut(lines.Text(), " ")
		var answer any
		switch order {
		case "acquire":
			if lock, err = m.Acquire(ctx, lockkey.Of("report", p.schema, 1), sessionlock.Fenced()); err == nil {
				answer = lock.PID()
			}
		case "write":
			answer, err = save(ctx, db, lock, text)
		case "held?":
			<-lock.Lost()
			answer = lock.Err()
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, answer); err != nil {
			return err
		}
	}
	return nil
}

// save writes the report as the holder of the lock. Between the lock and the statement any time can pass: only what
// is in the statement itself is true when it runs.
func save(ctx context.Context, db *sql.DB, lock *sessionlock.Lock, body string) (string, error) {
	query, args := "UPDATE reports SET body = $1 WHERE id = 1", []any{body}
	if os.Getenv(writerGuard) == "token" {
		token := lock.Token()
		query += " AND " + token.Guard(2)
		args = append(args, token.Args()...)
	}
	result, err := db.ExecContext(ctx, query, args...)
	if err != nil {
		return "", err
	}
	changed, err := result.RowsAffected()
	if err != nil || changed == 1 {
		return "1 row changed", err
	}
	return fmt.Sprintf("refused: a later token than %s has been issued", lock.Token()), nil
}
