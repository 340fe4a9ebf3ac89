package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
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

// place is a schema for one run of this program.
type place struct {
	config *pgx.ConnConfig // of both sides
	schema string
	db     *gorm.DB
	pool   *sql.DB
	server *pgserver.Server // nil where a DSN is given
}

// newPlace makes a schema on the server of dsn, or on a throw-away one. Its tables are those that Hibernate makes of the entities in java.go.
func newPlace(ctx context.Context, dsn string) (_ *place, err error) {
	p := &place{schema: "hibernateapp_" + strings.ToLower(rand.Text()[:8])}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if dsn == "" {
		if p.server, err = pgserver.Start(ctx); err != nil {
			return nil, err
		}
		dsn = p.server.DSN("postgres")
	}
	if p.config, err = pgx.ParseConfig(dsn); err != nil {
		return nil, err
	}
	p.config.RuntimeParams["search_path"] = p.schema
	p.pool = stdlib.OpenDB(*p.config)
	p.db, err = gorm.Open(postgres.New(postgres.Config{Conn: p.pool}), &gorm.Config{
		Logger:  logger.Discard,
		NowFunc: func() time.Time { return time.Now().UTC() }, // as Hibernate does with hibernate.jdbc.time_zone=UTC
	})
	if err != nil {
		return nil, err
	}
	if err := p.db.Use(gormlock.New()); err != nil {
		return nil, err
	}
	return p, p.db.WithContext(ctx).Exec("CREATE SCHEMA " + p.schema + ";" + tables).Error
}

func (p *place) close() error {
	var errs []error
	if p.db != nil {
		errs = append(errs, p.db.Exec("DROP SCHEMA IF EXISTS "+p.schema+" CASCADE").Error)
	}
	if p.pool != nil {
		errs = append(errs, p.pool.Close())
	}
	if p.server != nil {
		errs = append(errs, p.server.Stop())
	}
	return errors.Join(errs...)
}
