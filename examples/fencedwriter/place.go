package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
)

// place is a schema for one run of this program.
type place struct {
	dsn, schema string
	db          *gorm.DB
}

func newPlace(ctx context.Context, dsn string) (*place, error) {
	p := &place{dsn: dsn, schema: "fencedwriter_" + strings.ToLower(rand.Text()[:8])}
	db, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	p.db = db
	pool, err := db.DB()
	if err == nil {
		err = db.Exec("CREATE SCHEMA " + p.schema).Error
	}
	if err == nil {
		err = fence.Migrate(ctx, pool)
	}
	if err == nil {
		err = errors.Join(db.AutoMigrate(&Report{}), db.Clauses(gormlock.IgnoreFence()).Create(&Report{}).Error)
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

// open opens the database with gormlock.
func (p *place) open(ctx context.Context) (*gorm.DB, error) {
	config, err := p.config()
	if err != nil {
		return nil, err
	}
	pool := stdlib.OpenDB(*config)
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	if err == nil {
		err = db.Use(gormlock.New())
	}
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return db.WithContext(ctx), nil
}

func (p *place) report() (body string, err error) {
	err = p.db.Model(&Report{ID: 1}).Pluck("body", &body).Error
	return body, err
}

func (p *place) close() error {
	db := p.db.WithContext(context.Background()) // also when the program was interrupted
	return errors.Join(db.Exec("DROP SCHEMA IF EXISTS "+p.schema+" CASCADE").Error, closeDB(db))
}

func closeDB(db *gorm.DB) error {
	pool, err := db.DB()
	if err != nil {
		return err
	}
	return pool.Close()
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
