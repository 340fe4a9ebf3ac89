package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/gormlock/gormlock/fence"
)

// place is a schema for one run of this program.
type place struct {
	dsn, schema string
	db          *sql.DB
}

func newPlace(ctx context.Context, dsn string) (*place, error) {
	p := &place{dsn: dsn, schema: "fencedwriter_" + strings.ToLower(rand.Text()[:8])}
	config, err := p.config()
	if err != nil {
		return nil, err
	}
	p.db = stdlib.OpenDB(*config)
	_, err = p.db.ExecContext(ctx, "CREATE SCHEMA "+p.schema+"; CREATE TABLE reports (id int PRIMARY KEY, body text NOT NULL); INSERT INTO reports VALUES (1, '')")
	if err == nil {
		err = fence.Migrate(ctx, p.db)
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// config connects into the schema, where reports and tokens are.
func (p *place) config() (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(p.dsn)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["search_path"] = p.schema
	return config, nil
}

func (p *place) report(ctx context.Context) (body string, err error) {
	err = p.db.QueryRowContext(ctx, "SELECT body FROM reports WHERE id = 1").Scan(&body)
	return body, err
}

func (p *place) close() error {
	_, err := p.db.Exec("DROP SCHEMA IF EXISTS " + p.schema + " CASCADE") //nolint:noctx // also when the program was interrupted
	return errors.Join(err, p.db.Close())
}

// process is a writer that does what it is told, line by line.
type process struct {
	cmd     *exec.Cmd
	tell    io.WriteCloser
	answers *bufio.Scanner
}

// start starts a writer: this program again, told by its environment what it is.
func start(p *place, guard string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	w := &process{cmd: exec.Command(self)} //nolint:noctx // ends with its input
	w.cmd.Env = append(os.Environ(), writerDSN+"="+p.dsn, writerSchema+"="+p.schema, writerGuard+"="+guard)
	w.cmd.Stderr = os.Stderr
	if w.tell, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	answers, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.answers = bufio.NewScanner(answers)
	return w, w.cmd.Start()
}

func (w *process) ask(what string) (string, error) {
	if _, err := fmt.Fprintln(w.tell, what); err != nil {
		return "", err
	}
	if !w.answers.Scan() {
		return "", fmt.Errorf("the writer ended at %q: %w", what, errors.Join(w.answers.Err(), io.ErrUnexpectedEOF))
	}
	return w.answers.Text(), nil
}

func (w *process) end() {
	_ = w.tell.Close()
	_ = w.cmd.Wait() // it has said on its standard error what went wrong
}
