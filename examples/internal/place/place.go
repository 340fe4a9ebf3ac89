// Package place is where the examples run: each in a schema of its own, on the server of DATABASE_URL or GORMLOCK_TEST_DSN,
// or on a throw-away one. It is no part of what they show.
package place

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgserver"
)

// Main runs a program until it has ended or is interrupted, and exits.
func Main(name string, program func(ctx context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := program(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

// Given is the DSN of the server to run on. It is empty where none is given.
func Given() string { return cmp.Or(os.Getenv("DATABASE_URL"), os.Getenv("GORMLOCK_TEST_DSN")) }

// Server is dsn, or, where that is empty, the DSN of a throw-away server, which stop ends.
func Server(ctx context.Context, dsn string) (_ string, stop func() error, err error) {
	if dsn != "" {
		return dsn, func() error { return nil }, nil
	}
	server, err := pgserver.Start(ctx)
	if err != nil {
		return "", nil, err
	}
	return server.DSN("postgres"), server.Stop, nil
}

// Place is a schema, and GORM with gormlock in it.
type Place struct {
	DSN, Schema string
	Config      *pgx.ConnConfig
	Pool        *sql.DB
	DB          *gorm.DB

	leave []func() error // the last of them first
}

// New makes a schema that bears the program's name, on the server of dsn or, where that is empty, on a throw-away one.
// Leave drops it.
func New(ctx context.Context, dsn, program string, opts ...stdlib.OptionOpenDB) (*Place, error) {
	dsn, stop, err := Server(ctx, dsn)
	if err != nil {
		return nil, err
	}
	p, err := At(dsn, program+"_"+strings.ToLower(rand.Text()[:8]), opts...)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	p.leave = append([]func() error{stop}, p.leave...)
	if err := p.DB.WithContext(ctx).Exec("CREATE SCHEMA " + p.Schema).Error; err != nil {
		return nil, errors.Join(err, p.Leave())
	}
	p.leave = append(p.leave, func() error { return p.DB.Exec("DROP SCHEMA IF EXISTS " + p.Schema + " CASCADE").Error })
	return p, nil
}

// At is a schema that another process made, and drops.
func At(dsn, schema string, opts ...stdlib.OptionOpenDB) (*Place, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["search_path"] = schema
	p := &Place{DSN: dsn, Schema: schema, Config: config, Pool: stdlib.OpenDB(*config, opts...)}
	p.leave = []func() error{p.Pool.Close}
	p.DB, err = gorm.Open(postgres.New(postgres.Config{Conn: p.Pool}), &gorm.Config{Logger: logger.Discard})
	if err == nil {
		err = p.DB.Use(gormlock.New())
	}
	if err != nil {
		return nil, errors.Join(err, p.Leave())
	}
	return p, nil
}

// Sessions are connections of another program, one for each of its workers.
type Sessions []*pgx.Conn

// Connect opens n of them.
func Connect(ctx context.Context, config *pgx.ConnConfig, n int) (Sessions, error) {
	var s Sessions
	for range n {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s = append(s, conn)
	}
	return s, nil
}

// Close closes them all.
func (s Sessions) Close() (err error) {
	for _, conn := range s {
		err = errors.Join(err, conn.Close(context.Background()))
	}
	return err
}

// Free returns a channel from which a worker takes one of them, and to which it gives it back.
func (s Sessions) Free() chan *pgx.Conn {
	free := make(chan *pgx.Conn, len(s))
	for _, conn := range s {
		free <- conn
	}
	return free
}

// Leave ends what New and At began, also when the program was interrupted.
func (p *Place) Leave() error {
	var errs []error
	for i := len(p.leave) - 1; i >= 0; i-- {
		errs = append(errs, p.leave[i]())
	}
	p.leave = nil
	return errors.Join(errs...)
}
