package stand

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// WrappedPool is like the pool of a tracer around GORM's: neither the pool nor its transactions are those of database/sql.
type WrappedPool struct{ gorm.ConnPool }

type wrappedTx struct{ gorm.Tx }

// BeginTx begins a transaction, and wraps it too.
func (p *WrappedPool) BeginTx(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	tx, err := p.ConnPool.(gorm.TxBeginner).BeginTx(ctx, opts) //nolint:forcetypeassert // as it is used here
	if err != nil {
		return nil, err
	}
	return &wrappedTx{tx}, nil
}

// Transacting runs a function in a transaction.
type Transacting func(fn func(tx *gorm.DB) error) error

// Unseen are the transactions whose end gormlock cannot see.
var Unseen = map[string]func(t *testing.T) (db *gorm.DB, within Transacting){
	"db.Connection": func(t *testing.T) (*gorm.DB, Transacting) {
		t.Helper()
		db := OpenLined(t, gormlock.New())
		return db, func(fn func(tx *gorm.DB) error) error {
			return db.Connection(func(c *gorm.DB) error { return c.Transaction(fn) })
		}
	},
	"PlainTransactions": func(t *testing.T) (*gorm.DB, Transacting) {
		t.Helper()
		db := OpenLined(t, gormlock.New(gormlock.PlainTransactions()))
		return db, func(fn func(tx *gorm.DB) error) error { return db.Transaction(fn) }
	},
	"a session from before db.Use": func(t *testing.T) (*gorm.DB, Transacting) {
		t.Helper()
		db := OpenLined(t)
		before := db.WithContext(t.Context())
		Must(t, db.Use(gormlock.New()))
		return db, func(fn func(tx *gorm.DB) error) error { return before.Transaction(fn) }
	},
	"a pool that dbresolver knew before": func(t *testing.T) (*gorm.DB, Transacting) {
		t.Helper()
		db := OpenLined(t, dbresolver.Register(dbresolver.Config{}), gormlock.New())
		return db, func(fn func(tx *gorm.DB) error) error { return db.Clauses(dbresolver.Write).Transaction(fn) }
	},
	"a pool around that of gormlock": func(t *testing.T) (*gorm.DB, Transacting) {
		t.Helper()
		db := OpenLined(t, gormlock.New())
		db.ConnPool = &WrappedPool{db.ConnPool}
		db.Statement.ConnPool = db.ConnPool
		return db, func(fn func(tx *gorm.DB) error) error { return db.Transaction(fn) }
	},
	"a pool that gormlock was installed over": func(t *testing.T) (*gorm.DB, Transacting) {
		t.Helper()
		db := OpenLined(t)
		db.ConnPool = &WrappedPool{db.ConnPool}
		db.Statement.ConnPool = db.ConnPool
		Must(t, db.Use(gormlock.New()))
		return db, func(fn func(tx *gorm.DB) error) error { return db.Transaction(fn) }
	},
	"a *sql.Tx of the application": func(t *testing.T) (*gorm.DB, Transacting) {
		t.Helper()
		db := OpenLined(t, gormlock.New())
		pool, err := db.DB()
		Must(t, err)
		return db, func(fn func(tx *gorm.DB) error) error {
			plain, err := pool.BeginTx(t.Context(), nil)
			Must(t, err)
			tx, err := gorm.Open(postgres.New(postgres.Config{Conn: plain}), &gorm.Config{Logger: logger.Discard})
			Must(t, err)
			Must(t, tx.Use(gormlock.New()))
			if err := fn(tx); err != nil {
				return errors.Join(err, plain.Rollback())
			}
			return plain.Commit()
		}
	},
}

// OpenLined opens a schema for this test with these plugins, and makes the tables of Account and of LinedOrder.
func OpenLined(t *testing.T, plugins ...gorm.Plugin) *gorm.DB {
	t.Helper()
	db := pgtest.Open(t, pgtest.Schema())
	for _, p := range plugins {
		Must(t, db.Use(p))
	}
	Must(t, db.AutoMigrate(&Account{}, &LinedOrder{}, &LinedLine{}))
	return db
}
