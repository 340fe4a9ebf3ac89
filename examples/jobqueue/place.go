package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgserver"
)

// What a worker process is told by its environment.
const (
	workerName   = "JOBQUEUE_WORKER"
	workerDSN    = "JOBQUEUE_DSN"
	workerSchema = "JOBQUEUE_SCHEMA"
)

// place is a schema for one run of this program.
type place struct {
	dsn, schema string
	db          *gorm.DB
	pool        *sql.DB
	server      *pgserver.Server // nil where a DSN is given
}

// newPlace makes the tables in a schema of their own, on the server of dsn or on a throw-away one.
func newPlace(ctx context.Context, dsn string) (_ *place, err error) {
	p := &place{dsn: dsn, schema: "jobqueue_" + strings.ToLower(rand.Text()[:8])}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if dsn == "" {
		if p.server, err = pgserver.Start(ctx); err != nil {
			return nil, err
		}
		p.dsn = p.server.DSN("postgres")
	}
	if p.db, p.pool, err = open(p.dsn, p.schema); err != nil {
		return nil, err
	}
	return p, p.db.WithContext(ctx).Exec("CREATE SCHEMA " + p.schema + ";" + jobsTable + runsTable).Error
}

func (p *place) close() error {
	var errs []error
	if p.db != nil {
		errs = append(errs, p.db.Exec("DROP SCHEMA IF EXISTS "+p.schema+" CASCADE").Error, p.pool.Close())
	}
	if p.server != nil {
		errs = append(errs, p.server.Stop())
	}
	return errors.Join(errs...)
}

// open opens GORM, with the plugin, in a schema.
func open(dsn, schema string) (*gorm.DB, *sql.DB, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, nil, err
	}
	config.RuntimeParams["search_path"] = schema
	pool := stdlib.OpenDB(*config)
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	if err == nil {
		err = db.Use(gormlock.New())
	}
	if err != nil {
		return nil, nil, errors.Join(err, pool.Close())
	}
	return db, pool, nil
}

// workerProcess is the program where it is a worker: it works until it is told to end.
func workerProcess(ctx context.Context, name string, o options) error {
	dsn, schema := os.Getenv(workerDSN), os.Getenv(workerSchema)
	db, pool, err := open(dsn, schema)
	if err != nil {
		return err
	}
	defer func() { _ = pool.Close() }()
	listen, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = listen.Close(context.WithoutCancel(ctx)) }()
	w := &worker{
		queue: Queue{DB: db, Channel: schema, Lease: o.lease}, name: name,
		queues: []string{"mail", "images"}, batch: o.batch, poll: 100 * time.Millisecond,
	}
	if err := w.run(ctx, listen, o.goroutines); err != nil {
		return fmt.Errorf("worker %s: %w", name, err)
	}
	return nil
}
