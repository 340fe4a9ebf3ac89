package invariants

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// world is a schema of its own with all tables, the audit, and a database for each configuration.
type world struct {
	plain *gorm.DB            // the rival, and who looks: without the plugin
	sql   *sql.DB             // its pool
	dbs   map[string]*gorm.DB // the writer's, by configuration
	keys  atomic.Int64
}

// configurations are the ways to open the writer's database.
var configurations = []configuration{
	{name: "default"},
	{name: "PrepareStmt", options: []pgtest.Option{pgtest.PrepareStmt()}},
	{name: "SkipDefaultTransaction", options: []pgtest.Option{pgtest.SkipDefaultTransaction()}},
	{name: "simple protocol", options: []pgtest.Option{pgtest.SimpleProtocol()}},
	{name: "PlainTransactions", plugin: []gormlock.Option{gormlock.PlainTransactions()}},
	{name: "QueryFields", options: []pgtest.Option{pgtest.Config(func(c *gorm.Config) { c.QueryFields = true })}},
	{name: "TranslateError", options: []pgtest.Option{pgtest.Config(func(c *gorm.Config) { c.TranslateError = true })}},
	{name: "session made before Use", open: sessionBeforeUse},
	{name: "wrapped pool", open: onWrappedPool},
	{name: "dbresolver before", open: resolverBefore},
	{name: "commented SQL", open: commentedSQL},
	{name: "tables with their schema", qualified: true},
	{name: "tables with their schema, wrapped pool", qualified: true, open: onWrappedPool},
}

type configuration struct {
	name    string
	options []pgtest.Option
	plugin  []gormlock.Option
	open    func(t testing.TB, dsn string, use gorm.Plugin) *gorm.DB
	// qualified has the models write their tables with their schema
	qualified bool
}

// newWorldIn makes a world in a schema of its own.
func newWorldIn(t testing.TB) *world {
	t.Helper()
	schema := "w_" + strings.ToLower(rand.Text()[:12])
	pool := pgtest.SQLDB(t)
	if _, err := pool.Exec("CREATE SCHEMA " + schema); err != nil {
		t.Fatal(err)
	}
	return newWorld(t, pgtest.DSN(t)+"&search_path="+schema)
}

func newWorld(t testing.TB, dsn string) *world {
	t.Helper()
	writer, rival := pgtest.Param("application_name", "writer"), pgtest.Param("application_name", "rival")
	timeout := pgtest.Param("lock_timeout", "5s")
	w := &world{dbs: map[string]*gorm.DB{}}
	w.keys.Store(1_000_000) // beyond what the sequences give
	w.plain = pgtest.Open(t, pgtest.Through(dsn), rival, timeout)
	w.sql, _ = w.plain.DB()
	w.migrate(t)
	for _, c := range configurations {
		plugin := gormlock.New(c.plugin...)
		t.Cleanup(func() { _ = plugin.Close() })
		if c.open != nil {
			w.dbs[c.name] = c.open(t, dsn+appName, plugin)
		} else {
			w.dbs[c.name] = pgtest.Open(t, append([]pgtest.Option{pgtest.Through(dsn), writer, timeout, pgtest.Plugin(plugin)}, c.options...)...)
		}
		if c.qualified {
			pgtest.Qualify(t, w.dbs[c.name])
		}
	}
	return w
}

// appName is the end of a connection string that makes its sessions the writer's.
const appName = "&application_name=writer&lock_timeout=5s"

func openGORM(t testing.TB, pool gorm.ConnPool) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func openSQL(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	pool, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

var _ = stdlib.GetDefaultDriver // registers pgx

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sessionBeforeUse is a session that was made before the plugin was installed.
func sessionBeforeUse(t testing.TB, dsn string, use gorm.Plugin) *gorm.DB {
	t.Helper()
	db := openGORM(t, openSQL(t, dsn))
	session := db.Session(&gorm.Session{})
	must(t, db.Use(use))
	return session
}

// wrappedPool is what programs put around their pool to count or trace.
type wrappedPool struct{ *sql.DB }

func (p wrappedPool) BeginTx(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	tx, err := p.DB.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &wrappedTx{tx}, nil
}

type wrappedTx struct{ *sql.Tx }

func onWrappedPool(t testing.TB, dsn string, use gorm.Plugin) *gorm.DB {
	t.Helper()
	db := openGORM(t, &wrappedPool{openSQL(t, dsn)})
	must(t, db.Use(use))
	return db
}

// resolverBefore has a dbresolver that was installed before the plugin; all of its sources are one database.
func resolverBefore(t testing.TB, dsn string, use gorm.Plugin) *gorm.DB {
	t.Helper()
	db := openGORM(t, openSQL(t, dsn))
	source := postgres.New(postgres.Config{Conn: openSQL(t, dsn)})
	must(t, db.Use(dbresolver.Register(dbresolver.Config{Sources: []gorm.Dialector{source}})))
	must(t, db.Use(use))
	return db
}

// commentedSQL has a plugin that marks raw SQL with a comment, as those that trace do.
func commentedSQL(t testing.TB, dsn string, use gorm.Plugin) *gorm.DB {
	t.Helper()
	db := openGORM(t, openSQL(t, dsn))
	must(t, db.Use(use))
	must(t, db.Callback().Raw().Before("gorm:raw").Register("test:comment", func(tx *gorm.DB) {
		text := tx.Statement.SQL.String()
		tx.Statement.SQL.Reset()
		tx.Statement.SQL.WriteString("/* traced */ " + text)
	}))
	return db
}

// migrate makes the tables, and puts the audit on each.
func (w *world) migrate(t testing.TB) {
	t.Helper()
	must(t, w.plain.Exec(auditSchema).Error)
	for _, s := range shapes {
		must(t, w.plain.AutoMigrate(reflect.New(s.model).Interface()))
		must(t, w.audit(s.schema.Table, s.schema.PrimaryFieldDBNames))
	}
	must(t, w.migrateLoose(t, append(slices.Clone(family), clerks)).AutoMigrate(&Land{}, &Desk{}))
	w.exec(t, "INSERT INTO lands (id, name) VALUES (1, 'l'), (2, 'l'), (3, 'l')")
	w.exec(t, "INSERT INTO desks (id, code) VALUES (1, 'd1'), (2, 'd2'), (3, 'd3')")
	w.exec(t, "SELECT setval('lands_id_seq', 100), setval('desks_id_seq', 100)")
	migrateRooted(t, w)
}

// exec runs the rival's SQL.
func (w *world) exec(t testing.TB, text string, args ...any) {
	t.Helper()
	if _, err := w.sql.Exec(text, args...); err != nil {
		t.Fatalf("%s %v: %v", text, args, err)
	}
}

// insert stores a struct as its row, column by column.
func (w *world) insert(t testing.TB, s *shape, row any) {
	t.Helper()
	var names, places []string
	var args []any
	for _, f := range s.schema.Fields {
		if f.DBName == "" || f.DBName == "xmin" || f.DBName == "doubled" {
			continue
		}
		value, _ := f.ValueOf(context.Background(), reflect.Indirect(reflect.ValueOf(row)))
		args = append(args, value)
		names = append(names, `"`+f.DBName+`"`)
		places = append(places, fmt.Sprintf("$%d", len(args)))
	}
	w.exec(t, fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", s.table, strings.Join(names, ", "), strings.Join(places, ", ")), args...)
}

// condition is the key of a struct as SQL text with its arguments from $n on.
func (s *shape) condition(row any, n int) (string, []any) {
	var parts []string
	var args []any
	for _, f := range s.schema.PrimaryFields {
		value, _ := f.ValueOf(context.Background(), reflect.Indirect(reflect.ValueOf(row)))
		parts = append(parts, fmt.Sprintf("%s = $%d", f.DBName, n+len(args)))
		args = append(args, value)
	}
	return strings.Join(parts, " AND "), args
}

// moves is the assignment by which a rival moves the version.
func (s *shape) moves() string {
	column := s.version.DBName
	switch {
	case s.xmin():
		return ""
	case s.timed():
		return fmt.Sprintf(", %[1]s = %[1]s + interval '1 second'", column)
	}
	return fmt.Sprintf(", %[1]s = COALESCE(%[1]s, 0) + 1", column)
}

// rivalWrites stores b in the row, and moves its version.
func (w *world) rivalWrites(t testing.TB, s *shape, row any, b int64) {
	t.Helper()
	where, args := s.condition(row, 2)
	w.exec(t, fmt.Sprintf("UPDATE %s SET b = $1%s WHERE %s", s.table, s.moves(), where), append([]any{b}, args...)...)
}

func (w *world) rivalDeletes(t testing.TB, s *shape, row any) {
	t.Helper()
	where, args := s.condition(row, 1)
	w.exec(t, fmt.Sprintf("DELETE FROM %s WHERE %s", s.table, where), args...)
}

// read returns the row of a struct in a new one, past the plugin; nil where it is gone.
func (w *world) read(t testing.TB, s *shape, row any) any {
	t.Helper()
	if strings.Trim(s.auditKey(row), "/0 ") == "" {
		return nil // it has no key
	}
	found := reflect.New(s.model).Interface()
	db := w.plain.Unscoped()
	if s.xmin() {
		db = db.Select("*", "xmin")
	}
	err := db.Clauses(s.where(row)).Limit(1).Find(found)
	must(t, err.Error)
	if err.RowsAffected == 0 {
		return nil
	}
	return found
}
