package pgtest

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/schema"
)

// neverPing keeps pgx from checking whether a connection lives that was idle for a second: a slow machine would count more round trips than a fast
// one.
var neverPing = stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false })

// Open returns GORM on the test's database, closed at the end of the test.
func Open(t testing.TB, opts ...Option) *gorm.DB {
	t.Helper()
	o := newOptions(t, opts)
	config := &gorm.Config{Logger: logger.Discard}
	for _, change := range o.configs {
		change(config)
	}
	dialector := postgres.Config{DSN: o.dsn, PreferSimpleProtocol: o.simple, OptionOpenDB: []stdlib.OptionOpenDB{neverPing, keepConns}}
	if o.wrapped {
		dialector.Conn = sql.OpenDB(wrapper{stdlib.GetConnector(*o.connConfig(t), neverPing, keepConns)})
	}
	db, err := gorm.Open(postgres.New(dialector), config)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	o.pool(t, pool)
	for _, plugin := range o.plugins {
		if err := db.Use(plugin); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// Qualify makes models write the names of their tables with the current schema. GORM stores such a name in two parts.
func Qualify(t testing.TB, db *gorm.DB) {
	t.Helper()
	names := schema.NamingStrategy{}
	if err := db.Raw("SELECT quote_ident(current_schema()) || '.'").Scan(&names.TablePrefix).Error; err != nil {
		t.Fatal(err)
	}
	db.NamingStrategy = names
}

// SQLDB returns a database/sql pool of pgx connections, closed at the end of the test.
func SQLDB(t testing.TB, opts ...Option) *sql.DB {
	t.Helper()
	o := newOptions(t, opts)
	refuse(t, "SQLDB", o.gormOnly)
	connector := stdlib.GetConnector(*o.connConfig(t), neverPing)
	if o.wrapped {
		connector = wrapper{connector}
	}
	db := sql.OpenDB(connector)
	o.pool(t, db)
	return db
}

// Conn returns a separate connection, for an observer or a rival. It is closed at the end of the test.
func Conn(t testing.TB, opts ...Option) *pgx.Conn {
	t.Helper()
	o := newOptions(t, opts)
	refuse(t, "Conn", append(o.gormOnly, o.poolOnly...))
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, o.connConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		_ = conn.Close(ctx) // the test may have broken it
	})
	return conn
}

func (o *options) connConfig(t testing.TB) *pgx.ConnConfig {
	t.Helper()
	config, err := pgx.ParseConfig(o.dsn)
	if err != nil {
		t.Fatal(err)
	}
	if o.simple {
		config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	}
	return config
}

func (o *options) pool(t testing.TB, db *sql.DB) {
	if o.maxConns > 0 {
		db.SetMaxOpenConns(o.maxConns)
		db.SetMaxIdleConns(o.maxConns)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the pool: %v", err)
		}
	})
}
