package matrix_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/glebarez/sqlite"
	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/fence"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lease"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/work"
)

const patience = 30 * time.Second

// server is a column of the table.
type server struct {
	name string
	open func(t *testing.T) *place
}

var servers = []server{
	{"PostgreSQL", func(t *testing.T) *place { return postgres(t, pgtest.SchemaDSN(t), "") }},
	{"PgBouncer, session", func(t *testing.T) *place { return bounced(t, "session") }},
	{"PgBouncer, transaction", func(t *testing.T) *place { return bounced(t, "transaction") }},
	{"PgBouncer, statement", func(t *testing.T) *place { return bounced(t, "statement") }},
	{"Pgpool-II, one server", func(t *testing.T) *place {
		direct := pgtest.Fresh(t).DSN("postgres")
		return postgres(t, direct, pgtest.Pgpool(t, []string{direct}, "load_balance_mode = off"))
	}},
	{"Pgpool-II, balancing", func(t *testing.T) *place {
		primary := pgtest.Fresh(t)
		direct := primary.DSN("postgres")
		dsns := []string{direct, pgtest.Standby(t, primary).DSN("postgres")}
		return postgres(t, direct, pgtest.Pgpool(t, dsns, "load_balance_mode = on", "statement_level_load_balance = on"))
	}},
	{"PGlite", func(t *testing.T) *place {
		dsn := pgtest.PGlite(t)
		p := postgres(t, dsn, dsn)
		p.within = 5 * time.Second // it runs one transaction at a time: the second one waits for the first
		return p
	}},
	{"MariaDB", func(t *testing.T) *place {
		dsn := mariaserver.DSN(t)
		return other(t, dsn, mariaserver.OpenDSN(t, dsn, nil))
	}},
	{"SQLite", onSQLite},
}

// place is a server by the ways to talk to it, with the tables of all features in it.
type place struct {
	db   *gorm.DB      // with the plugin
	pool *sql.DB       // past the plugin
	pgx  *pgxpool.Pool // nil where nobody speaks PostgreSQL's protocol
	dsn  string        // the connection string
	// within bounds one feature: what waits longer neither works nor is refused.
	within time.Duration
}

// postgres is the server at direct, reached through a pooler if there is one. The tables are made past it.
func postgres(t *testing.T, direct, pooled string) *place {
	t.Helper()
	opts, dsn := []pgtest.Option{pgtest.MaxConns(3)}, direct
	if pooled != "" { // as docs/poolers.md says: nothing is prepared
		opts, dsn = append(opts, pgtest.SimpleProtocol()), pooled
	}
	tables(t, pgtest.Open(t, pgtest.Through(direct), pgtest.SimpleProtocol(), pgtest.MaxConns(1), pgtest.Plugin(gormlock.New())), true)
	p := &place{within: patience, dsn: dsn, db: pgtest.Open(t, append(opts, pgtest.Through(dsn), pgtest.Plugin(gormlock.New()))...)}
	p.pool = pgtest.SQLDB(t, append(opts, pgtest.Through(dsn))...)
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 3
	if pooled != "" {
		config.ConnConfig.DefaultQueryExecMode = simple
	}
	if p.pgx, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.pgx.Close)
	return p
}

func bounced(t *testing.T, mode string) *place {
	t.Helper()
	direct := pgtest.Database(t)
	return postgres(t, direct, pgtest.StartPgBouncer(t, direct, "pool_mode = "+mode, "default_pool_size = 10").DSN())
}

func onSQLite(t *testing.T) *place {
	t.Helper()
	dsn := "file:" + t.TempDir() + "/matrix.db?_pragma=busy_timeout(2000)"
	db, err := gorm.Open(sqlite.Open(dsn), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Use(gormlock.New()); err != nil {
		t.Fatal(err)
	}
	p := other(t, dsn, db)
	t.Cleanup(func() { _ = p.pool.Close() })
	return p
}

// other is a server that is no PostgreSQL.
func other(t *testing.T, dsn string, db *gorm.DB) *place {
	t.Helper()
	tables(t, db, false)
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	return &place{within: patience, db: db, pool: pool, dsn: dsn}
}

// tables makes those of the features; what only PostgreSQL has is left out elsewhere.
func tables(t *testing.T, db *gorm.DB, isPostgres bool) {
	t.Helper()
	if err := db.AutoMigrate(&document{}, &ruled{}, &report{}, &ticket{}); err != nil {
		t.Fatal(err)
	}
	if !isPostgres {
		return
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	_ = work.Migrate(db, &letter{}) // long before a worker reads it from a standby; what refuses it refuses the feature too
	for _, err := range []error{
		fence.Migrate(t.Context(), pool), lease.Migrate(t.Context(), pool), gormlock.MigrateOnce(db),
		db.AutoMigrate(&stamped{}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}
