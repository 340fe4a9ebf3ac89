package stand

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/glebarez/sqlite"
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
)

// Modes are the ways to talk to the server in which each promise must hold.
var Modes = []struct {
	Name string
	Opts []pgtest.Option
}{
	{"extended protocol", nil},
	{"PrepareStmt", []pgtest.Option{pgtest.PrepareStmt()}},
	{"simple protocol", []pgtest.Option{pgtest.SimpleProtocol()}},
	{"PrepareStmt over simple protocol", []pgtest.Option{pgtest.PrepareStmt(), pgtest.SimpleProtocol()}},
}

// EachMode runs a test in each of the [Modes], in parallel.
func EachMode(t *testing.T, test func(t *testing.T, opts ...pgtest.Option)) {
	t.Helper()
	for _, m := range Modes {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			test(t, m.Opts...)
		})
	}
}

// Beside runs a test for each of the cases by its name, in parallel.
func Beside[T any](t *testing.T, cases map[string]T, test func(t *testing.T, c T)) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// Open opens a schema for this test.
func Open(t testing.TB, opts ...pgtest.Option) *gorm.DB {
	t.Helper()
	plugin := gormlock.New()
	t.Cleanup(func() { _ = plugin.Close() })
	return pgtest.Open(t, append([]pgtest.Option{pgtest.Plugin(plugin), pgtest.Schema()}, opts...)...)
}

// Versioned opens a schema for this test, with tables for the models.
func Versioned(t testing.TB, models []any, opts ...pgtest.Option) *gorm.DB {
	t.Helper()
	db := Open(t, opts...)
	Must(t, db.AutoMigrate(models...))
	return db
}

// Stored opens a schema for this test, with a table that has the row, and returns the row as it was created.
func Stored[T any](t testing.TB, row T) (*gorm.DB, T) {
	t.Helper()
	db := Versioned(t, []any{new(T)})
	return db, Made(t, db, row)
}

// Qualified is Versioned with models that write their tables with their schema.
func Qualified(t testing.TB, models []any, opts ...pgtest.Option) *gorm.DB {
	t.Helper()
	db := Open(t, opts...)
	pgtest.Qualify(t, db)
	Must(t, db.AutoMigrate(models...))
	return db
}

// TableOf is the table of a model, with the schema if it is written with one.
func TableOf(db *gorm.DB, model any) string {
	stmt := &gorm.Statement{DB: db}
	_ = stmt.Parse(model)
	return stmt.Schema.Table
}

// OnSQLite opens a SQLite database for this test, with tables for the models.
func OnSQLite(t testing.TB, models []any, change ...func(*gorm.Config)) *gorm.DB {
	t.Helper()
	config := &gorm.Config{Logger: logger.Discard}
	for _, c := range change {
		c(config)
	}
	dsn := "file:" + filepath.Join(t.TempDir(), "db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"
	db, err := gorm.Open(sqlite.Open(dsn), config)
	Must(t, err)
	pool, err := db.DB()
	Must(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	plugin := gormlock.New()
	t.Cleanup(func() { _ = plugin.Close() })
	Must(t, db.Use(plugin))
	Must(t, db.AutoMigrate(models...))
	return db
}

// OnBoth runs a test on PostgreSQL and on SQLite, whose SQL it writes.
func OnBoth(t *testing.T, models []any, test func(t *testing.T, db *gorm.DB)) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, Versioned(t, models))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, OnSQLite(t, models))
	})
}

// LikeMySQL makes MariaDB return no rows of an INSERT, because MySQL does not.
var LikeMySQL = mariaserver.Dialect(func(c *mysql.Config) { c.DisableWithReturning = true })

// concat makes || join texts, as it does elsewhere.
var concat = mariaserver.Param("sql_mode=%27PIPES_AS_CONCAT%2CSTRICT_TRANS_TABLES%27")

// OnEach runs a test on PostgreSQL, on SQLite and on MariaDB.
func OnEach(t *testing.T, models []any, test func(t *testing.T, db *gorm.DB)) {
	t.Helper()
	OnBoth(t, models, test)
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		test(t, mariaserver.Open(t, models, concat))
	})
}

// OnEachAndMySQL does the same, and also runs the test on a MariaDB that returns no rows.
func OnEachAndMySQL(t *testing.T, models []any, test func(t *testing.T, db *gorm.DB)) {
	t.Helper()
	OnEach(t, models, test)
	t.Run("mariadb like MySQL", func(t *testing.T) {
		t.Parallel()
		test(t, mariaserver.Open(t, models, concat, LikeMySQL))
	})
}

// InTx runs body in a transaction that is rolled back.
func InTx(t testing.TB, db *gorm.DB, body func(tx *gorm.DB)) {
	t.Helper()
	tx := db.Begin()
	if tx.Error != nil {
		t.Fatal(tx.Error)
	}
	defer tx.Rollback()
	body(tx)
}

// UseReplica sends db's reads to another database.
func UseReplica(t testing.TB, db *gorm.DB, dsn string) {
	t.Helper()
	resolver := dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{postgres.Open(dsn)}})
	if err := db.Use(resolver); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = resolver.Call(func(pool gorm.ConnPool) error {
			if pool, ok := pool.(io.Closer); ok {
				_ = pool.Close()
			}
			return nil
		})
	})
}
