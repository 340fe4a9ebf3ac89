package mariaserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// Option changes how [Open] opens a database.
type Option func(*opening)

type opening struct {
	config  gorm.Config
	params  string
	plain   bool
	plugin  []gormlock.Option
	dialect mysql.Config
}

// Config changes GORM's configuration.
func Config(change func(*gorm.Config)) Option { return func(o *opening) { change(&o.config) } }

// Dialect changes the configuration of GORM's driver.
func Dialect(change func(*mysql.Config)) Option { return func(o *opening) { change(&o.dialect) } }

// Param adds a parameter to the connection string.
func Param(param string) Option { return func(o *opening) { o.params += "&" + param } }

// Plain leaves gormlock out.
func Plain() Option { return func(o *opening) { o.plain = true } }

// Plugin gives options to gormlock.
func Plugin(opts ...gormlock.Option) Option { return func(o *opening) { o.plugin = opts } }

// logged is locked by the test that uses the general log, because there is one log for all databases.
var logged sync.Mutex

var databases atomic.Int64

// DSN creates an empty database, which is dropped at the end of the test, and returns its connection string. The test is skipped if
// GORMLOCK_WITHOUT_MARIADB says that there is no server.
func DSN(t testing.TB) string {
	t.Helper()
	s, err := started()
	if errors.Is(err, errNone) && os.Getenv("GORMLOCK_WITHOUT_MARIADB") != "" {
		t.Skip("left out by GORMLOCK_WITHOUT_MARIADB: there is no mariadbd here")
	}
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("t%d", databases.Add(1))
	server, err := sql.Open("mysql", s.dsn(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = server.ExecContext(context.Background(), "DROP DATABASE "+name)
		_ = server.Close()
	})
	if _, err := server.ExecContext(t.Context(), "CREATE DATABASE "+name+" CHARACTER SET utf8mb4"); err != nil {
		t.Fatal(err)
	}
	return s.dsn(name)
}

// Open opens a database for this test, with tables for the models.
func Open(t testing.TB, models []any, opts ...Option) *gorm.DB {
	t.Helper()
	return OpenDSN(t, DSN(t), models, opts...)
}

// OpenDSN opens an existing database, which others may have open too.
func OpenDSN(t testing.TB, dsn string, models []any, opts ...Option) *gorm.DB {
	t.Helper()
	o := opening{config: gorm.Config{Logger: logger.Discard}}
	for _, opt := range opts {
		opt(&o)
	}
	o.dialect.DSN = dsn + o.params
	db, err := gorm.Open(mysql.New(o.dialect), &o.config)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	pool.SetMaxIdleConns(20) // the log names databases by their open connections
	t.Cleanup(func() { _ = pool.Close() })
	if !o.plain {
		plugin := gormlock.New(o.plugin...)
		t.Cleanup(func() { _ = plugin.Close() })
		if err := db.Use(plugin); err != nil {
			t.Fatal(err)
		}
	}
	if len(models) > 0 {
		if err := db.AutoMigrate(models...); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// Statements returns the statements that the server got while do ran, from its general log: only those on this database, and without those that
// administer connections.
func Statements(t testing.TB, db *gorm.DB, do func()) []string {
	t.Helper()
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	var name string
	if err := pool.QueryRowContext(t.Context(), "SELECT DATABASE()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	logged.Lock()
	defer logged.Unlock()
	for _, set := range []string{"SET GLOBAL log_output='TABLE'", "TRUNCATE mysql.general_log", "SET GLOBAL general_log=1"} {
		if _, err := pool.ExecContext(t.Context(), set); err != nil {
			t.Fatal(err)
		}
	}
	do()
	if _, err := pool.ExecContext(t.Context(), "SET GLOBAL general_log=0"); err != nil {
		t.Fatal(err)
	}
	all := pgtest.Texts(t, pool, "SELECT argument FROM mysql.general_log WHERE command_type IN ('Query','Prepare','Execute')"+
		" AND thread_id IN (SELECT id FROM information_schema.processlist WHERE db = DATABASE())")
	return slices.DeleteFunc(all, func(text string) bool { return strings.Contains(text, "general_log") })
}
