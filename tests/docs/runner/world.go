package runner

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/inspect"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/sessionlock"
)

// World is what every snippet finds: a schema with gormlock's own tables, and all that is opened on it.
type World struct {
	T   *testing.T
	DSN string
	SQL *sql.DB
	DB  *gorm.DB // with the plugin

	documents string // SQL of the document
	cleanup   []func() error
}

// here is the world of the snippet that runs.
var here *World

// Here returns the world of the snippet that runs.
func Here() *World { return here }

func (w *World) open() {
	ctx := context.Background()
	Check(w.execute(ctx, `DO $$ BEGIN
		EXECUTE format('DROP SCHEMA IF EXISTS %1$I CASCADE', current_setting('search_path'));
		EXECUTE format('CREATE SCHEMA %1$I', current_setting('search_path'));
	END $$;`+gormlock.OnceSchema+";"+fence.Schema+";"+lease.Schema+";"+inspect.Schema))
	config, err := pgx.ParseConfig(w.DSN)
	Check(err)
	w.SQL = stdlib.OpenDB(*config)
	w.Defer(w.SQL.Close)
	w.DB = w.Plain()
	Check(w.DB.Use(gormlock.New()))
}

// Locks opens a manager of session locks.
func (w *World) Locks() *sessionlock.Manager {
	m, err := sessionlock.Open(context.Background(), w.DSN)
	Check(m, err)
	return m
}

// Leases makes a manager of leases.
func (w *World) Leases() *lease.Manager {
	m, err := lease.New(context.Background(), w.SQL)
	Check(m, err)
	return m
}

// Plain returns GORM without the plugin.
func (w *World) Plain() *gorm.DB {
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: w.SQL}), &gorm.Config{Logger: logger.Discard})
	Check(err)
	return db
}

// Tables makes tables of models.
func (w *World) Tables(models ...any) { Check(w.DB.AutoMigrate(models...)) }

// DocumentsTables makes the tables that the document makes in its SQL.
func (w *World) DocumentsTables() { Check(w.execute(context.Background(), w.documents)) }

// Rows stores what it is given pointers to.
func (w *World) Rows(values ...any) {
	for _, value := range values {
		Check(w.DB.Create(value).Error)
	}
}

// execute runs statements on a connection of its own.
func (w *World) execute(ctx context.Context, statements string) error {
	conn, err := pgx.Connect(ctx, w.DSN)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statements)
	return errors.Join(err, conn.Close(ctx))
}

// Defer has a function called when the snippet has ended.
func (w *World) Defer(what func() error) { w.cleanup = append(w.cleanup, what) }

func (w *World) close() {
	for _, what := range slices.Backward(w.cleanup) {
		if err := what(); err != nil {
			w.T.Errorf("what the snippet left cannot be closed: %v", err)
		}
	}
}
