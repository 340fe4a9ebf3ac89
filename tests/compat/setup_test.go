package compat_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
	"gorm.io/plugin/opentelemetry/tracing"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// setup is a way to run GORM.
type setup struct {
	name          string
	config        func(*gorm.Config)
	pool          func(t *testing.T, at place) *sql.DB // nil: GORM opens its own
	beside        func(t *testing.T, s *side, at place) gorm.Plugin
	gormlockFirst bool
	plugin        []gormlock.Option
	pooler        bool // PgBouncer in transaction mode
	simple        bool
	prepares      bool // statements are prepared by hand, which the plugin leaves to the driver
	skips         bool // without default transactions
}

func setups() []setup {
	prepare := func(c *gorm.Config) { c.PrepareStmt = true }
	return []setup{
		{name: "default"},
		{name: "PrepareStmt", config: prepare, prepares: true},
		{name: "SkipDefaultTransaction", config: func(c *gorm.Config) { c.SkipDefaultTransaction = true }, skips: true},
		{name: "simple protocol", simple: true},
		{name: "other settings of GORM", config: otherSettings},
		{name: "one connection", pool: single},
		{name: "stdlib OpenDB", pool: opened},
		{name: "stdlib OpenDBFromPool", pool: fromPool},
		{name: "dbresolver", beside: resolver},
		{name: "dbresolver last", beside: resolver, gormlockFirst: true},
		{name: "dbresolver and PrepareStmt", beside: resolver, config: prepare, prepares: true},
		{name: "opentelemetry", beside: tracer},
		{name: "opentelemetry last", beside: tracer, gormlockFirst: true},
		{name: "PlainTransactions", plugin: []gormlock.Option{gormlock.PlainTransactions()}},
		{name: "PgBouncer in transaction mode", pooler: true, simple: true},
	}
}

func otherSettings(c *gorm.Config) {
	c.TranslateError, c.QueryFields, c.PropagateUnscoped, c.FullSaveAssociations = true, true, true, true
	c.CreateBatchSize, c.DefaultTransactionTimeout, c.DefaultContextTimeout = 2, time.Minute, time.Minute
}

// connect opens GORM at a place.
func (c setup) connect(t *testing.T, s *side, at place) *gorm.DB {
	t.Helper()
	config := func(to *gorm.Config) {
		to.Logger, to.NowFunc = s.log, now
		if c.config != nil {
			c.config(to)
		}
	}
	if c.pool == nil {
		options := append(at.options(), pgtest.Config(config))
		if c.simple {
			options = append(options, pgtest.SimpleProtocol())
		}
		return pgtest.Open(t, options...)
	}
	pool := c.pool(t, at)
	given := &gorm.Config{}
	config(given)
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), given)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func single(t *testing.T, at place) *sql.DB {
	t.Helper()
	return pgtest.SQLDB(t, append(at.options(), pgtest.MaxConns(1))...)
}

// opened is pgx's database/sql pool, which keeps descriptions of statements and no statements.
func opened(t *testing.T, at place) *sql.DB {
	t.Helper()
	return pgtest.SQLDB(t, append(at.options(), pgtest.Param("default_query_exec_mode", "cache_describe"))...)
}

// fromPool is database/sql over a pgxpool.
func fromPool(t *testing.T, at place) *sql.DB {
	t.Helper()
	config, err := pgxpool.ParseConfig(at.dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["search_path"] = at.schema
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	db := stdlib.OpenDBFromPool(pool, stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false }))
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// resolver reads from a replica: another way to the same tables.
func resolver(t *testing.T, s *side, at place) gorm.Plugin {
	t.Helper()
	replica := pgtest.SQLDB(t, at.through(t, s).options()...)
	return dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{postgres.New(postgres.Config{Conn: replica})}})
}

// tracer keeps the spans of the side.
func tracer(_ *testing.T, s *side, _ place) gorm.Plugin {
	s.spans = tracetest.NewSpanRecorder()
	return tracing.NewPlugin(tracing.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s.spans))))
}

// pooler leads dsn through a PgBouncer in transaction mode.
func pooler(t *testing.T, dsn string) string {
	t.Helper()
	return pgtest.StartPgBouncer(t, dsn, "pool_mode = transaction", "server_round_robin = 1").DSN()
}
