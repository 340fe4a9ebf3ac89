package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgserver"
	"github.com/gormlock/gormlock/lockkey"
)

// stage is what every chapter runs on: a database with gormlock, and a plain connection that looks at it from outside.
type stage struct {
	*page
	ctx     context.Context
	place   string // for the reader
	name    string // of the schema, and the first part of every key
	made    bool   // the schema is there
	config  *pgx.ConnConfig
	server  *pgserver.Server // nil on a server that was given
	plugin  *gormlock.Plugin
	db      *gorm.DB
	outside *sql.DB
}

func newStage(ctx context.Context, p *page, dsn string) (*stage, error) {
	s := &stage{page: p, ctx: ctx, name: "gormlock_tour_" + strings.ToLower(rand.Text()[:6]), plugin: gormlock.New()}
	if err := s.open(dsn); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stage) open(dsn string) (err error) {
	where := "the server you gave"
	if dsn == "" {
		where = "a throw-away server"
		if s.server, err = pgserver.Start(s.ctx); err != nil {
			return err
		}
		dsn = s.server.DSN("postgres")
	}
	if s.config, err = pgx.ParseConfig(dsn); err != nil {
		return err
	}
	s.config.RuntimeParams["search_path"] = s.name
	s.config.RuntimeParams["application_name"] = s.name
	outside := s.config.Copy()
	outside.RuntimeParams["application_name"] = s.name + " outside"
	s.outside = stdlib.OpenDB(*outside)
	if _, err := s.outside.ExecContext(s.ctx, "create schema "+s.name); err != nil {
		return err
	}
	s.made = true
	var version string
	if err := s.outside.QueryRowContext(s.ctx, "show server_version").Scan(&version); err != nil {
		return err
	}
	s.place = fmt.Sprintf("PostgreSQL %s, %s, schema %s", version, where, s.name)
	if s.db, err = s.connect(s.config); err != nil {
		return err
	}
	return s.db.Use(s.plugin)
}

// connect opens GORM, without gormlock.
func (s *stage) connect(config *pgx.ConnConfig) (*gorm.DB, error) {
	// Without a ping before what is sent after a second's pause: a slow machine would count more round trips.
	pool := stdlib.OpenDB(*config, stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false }))
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return db.WithContext(s.ctx), nil
}

// another opens GORM once more, with gormlock as the options say.
func (s *stage) another(config *pgx.ConnConfig, options ...gormlock.Option) (db *gorm.DB, done func() error, err error) {
	db, err = s.connect(config)
	if err != nil {
		return nil, nil, err
	}
	pool, err := db.DB()
	if err != nil {
		return nil, nil, err
	}
	plugin := gormlock.New(options...)
	done = func() error { return errors.Join(plugin.Close(), pool.Close()) }
	if err := db.Use(plugin); err != nil {
		return nil, nil, errors.Join(err, done())
	}
	return db, done, nil
}

// key is a key that no other program on the server has.
func (s *stage) key(parts ...any) lockkey.Key {
	return gormlock.Key(append([]any{s.name}, parts...)...)
}

// hold takes the lock on a connection outside of gormlock, in plain SQL. release gives it back.
func (s *stage) hold(key lockkey.Key) (release func() error, err error) {
	tx, err := s.outside.BeginTx(s.ctx, nil)
	if err != nil {
		return nil, err
	}
	id, _ := key.Int64()
	if _, err := tx.ExecContext(s.ctx, "select pg_advisory_xact_lock($1)", id); err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return tx.Commit, nil
}

// blocked returns when a transaction of the tour waits for a lock, or says that none does.
func (s *stage) blocked() error {
	return s.until("select exists (select from pg_stat_activity where application_name = $1 and wait_event_type = 'Lock')", s.name)
}

// until asks the server until it says true.
func (s *stage) until(query string, args ...any) error {
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		var yes bool
		if err := s.outside.QueryRowContext(ctx, query, args...).Scan(&yes); err != nil {
			return fmt.Errorf("waiting for %q: %w", query, err)
		}
		if yes {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %q: %w", query, ctx.Err())
		case <-tick.C:
		}
	}
}

// left looks whether the chapters have left anything behind.
func (s *stage) left() error {
	s.heading("What is left behind")
	pool, err := s.db.DB()
	if err != nil {
		return err
	}
	var locks int
	err = s.outside.QueryRowContext(s.ctx, "select count(*) from pg_locks join pg_stat_activity using (pid)"+
		" where locktype = 'advisory' and starts_with(application_name, $1)", s.name).Scan(&locks)
	if err != nil {
		return err
	}
	busy := pool.Stats().InUse
	s.check(locks == 0 && busy == 0, "%d advisory locks and %d busy connections: each lock ended with its transaction", locks, busy)
	return nil
}

// close takes away all that the tour has made, also when its ctx has ended.
func (s *stage) close() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), 10*time.Second)
	defer cancel()
	err := s.plugin.Close()
	if s.db != nil {
		pool, failed := s.db.DB()
		if failed == nil {
			failed = pool.Close()
		}
		err = errors.Join(err, failed)
	}
	if s.outside != nil {
		if s.made && s.server == nil { // with a server of its own the schema goes too
			_, failed := s.outside.ExecContext(ctx, "drop schema "+s.name+" cascade")
			err = errors.Join(err, failed)
		}
		err = errors.Join(err, s.outside.Close())
	}
	if s.server != nil {
		err = errors.Join(err, s.server.Stop())
	}
	return err
}
