package costs_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// note is a model without anything that the plugin would look after.
type note struct {
	ID    int64
	Title string
	Body  string
}

// idleDriver answers every statement at once, with as many notes as its name says: what is measured above it is GORM.
type idleDriver struct{ notes int }

func (d idleDriver) Connect(context.Context) (driver.Conn, error) {
	return &idleConn{notes: d.notes}, nil
}
func (d idleDriver) Driver() driver.Driver { return nil }

type idleConn struct{ notes int }

// Conn says that the driver is as pgx is by itself: a statement through a driver that is not known costs more, because it is sent once.
func (*idleConn) Conn() *idleSession { return &idleSession{"cache statement"} }

type idleSession struct{ DefaultQueryExecMode string }

func (s *idleSession) Config() *idleSession { return s }

func (*idleConn) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrSkip }
func (*idleConn) Close() error                        { return nil }
func (c *idleConn) Begin() (driver.Tx, error)         { return c, nil }
func (*idleConn) Commit() error                       { return nil }
func (*idleConn) Rollback() error                     { return nil }

func (c *idleConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return c, nil }

func (*idleConn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}

func (c *idleConn) QueryContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Rows, error) {
	if strings.HasPrefix(query, "SELECT") && !strings.Contains(query, "count(") {
		return &idleRows{columns: []string{"id", "title", "body"}, left: c.notes}, nil
	}
	return &idleRows{columns: []string{"id"}, left: 1}, nil
}

type idleRows struct {
	columns []string
	left    int
}

func (r *idleRows) Columns() []string { return r.columns }
func (*idleRows) Close() error        { return nil }

func (r *idleRows) Next(row []driver.Value) error {
	if r.left == 0 {
		return io.EOF
	}
	r.left--
	for i := range row {
		row[i] = "text"
	}
	row[0] = int64(7)
	return nil
}

func idle(tb testing.TB, notes int, config gorm.Config, plugins ...gorm.Plugin) *gorm.DB {
	tb.Helper()
	pool := sql.OpenDB(idleDriver{notes})
	tb.Cleanup(func() { _ = pool.Close() })
	config.Logger = logger.Discard
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &config)
	if err != nil {
		tb.Fatal(err)
	}
	for _, p := range plugins {
		if err := db.Use(p); err != nil {
			tb.Fatal(err)
		}
	}
	return db
}

var unused = []struct {
	name  string
	notes int
	run   func(db *gorm.DB) error
}{
	{"create", 1, func(db *gorm.DB) error { return db.Create(&note{Title: "t", Body: "b"}).Error }},
	{"first", 1, func(db *gorm.DB) error { var n note; return db.First(&n, 7).Error }},
	{"update", 1, func(db *gorm.DB) error { return db.Model(&note{ID: 7}).Update("title", "u").Error }},
	{"updates", 1, func(db *gorm.DB) error { return db.Model(&note{ID: 7}).Updates(note{Title: "u", Body: "c"}).Error }},
	{"save", 1, func(db *gorm.DB) error { return db.Save(&note{ID: 7, Title: "u"}).Error }},
	{"delete", 1, func(db *gorm.DB) error { return db.Delete(&note{}, 7).Error }},
	{"find 100", 100, func(db *gorm.DB) error { var n []note; return db.Find(&n).Error }},
	{"count", 1, func(db *gorm.DB) error { var n int64; return db.Model(&note{}).Count(&n).Error }},
	{"raw", 1, func(db *gorm.DB) error { var n note; return db.Raw("SELECT * FROM notes").Scan(&n).Error }},
	{"exec", 1, func(db *gorm.DB) error { return db.Exec("UPDATE notes SET title = 'x'").Error }},
	{"row", 1, func(db *gorm.DB) error { var id int64; return ignoreColumns(db.Model(&note{}).Row().Scan(&id)) }},
}

// ignoreColumns: a row of notes has three columns, and scanning one costs the same on both sides.
func ignoreColumns(error) error { return nil }

// TestUnused_Allocations: what uses nothing of the plugin allocates what it does without it. V19
//
//nolint:paralleltest // allocations can only be counted while nobody else allocates
func TestUnused_Allocations(t *testing.T) {
	for name, config := range map[string]gorm.Config{
		"dry run":                      {DryRun: true, SkipDefaultTransaction: true},
		"without default transactions": {SkipDefaultTransaction: true},
		"in its own transaction":       {},
	} {
		for _, u := range unused {
			if config.DryRun && (u.name == "row" || u.name == "raw") { // GORM has none in a dry run
				continue
			}
			t.Run(name+"/"+u.name, func(t *testing.T) {
				with, without := idle(t, u.notes, config, gormlock.New()), idle(t, u.notes, config)
				if err := errors.Join(u.run(with), u.run(without)); err != nil {
					t.Fatal(err)
				}
				// A pool that was emptied meanwhile counts once more, on either side.
				least, plain := math.Inf(1), math.Inf(1)
				for round := 0; round < 20 && (round < 3 || least > plain); round++ {
					least = min(least, testing.AllocsPerRun(100, func() { _ = u.run(with) }))
					plain = min(plain, testing.AllocsPerRun(100, func() { _ = u.run(without) }))
				}
				if least > plain+allocationSlack {
					t.Errorf("%v allocations with the plugin, %v without", least, plain)
				}
			})
		}
	}
}

// TestTransaction_Allocations: to see the end of an explicit transaction costs five allocations.
//
//nolint:paralleltest // allocations can only be counted while nobody else allocates
func TestTransaction_Allocations(t *testing.T) {
	run := func(db *gorm.DB) func() {
		return func() {
			if err := db.Transaction(func(tx *gorm.DB) error { return tx.Exec("UPDATE notes SET title = 'x'").Error }); err != nil {
				t.Fatal(err)
			}
		}
	}
	with, without := run(idle(t, 1, gorm.Config{}, gormlock.New())), run(idle(t, 1, gorm.Config{}))
	const more = 5
	least, plain := math.Inf(1), math.Inf(1)
	for round := 0; round < 20 && (round < 3 || least > plain+more); round++ {
		least, plain = min(least, testing.AllocsPerRun(100, with)), min(plain, testing.AllocsPerRun(100, without))
	}
	if least > plain+more+allocationSlack {
		t.Errorf("%v allocations with the plugin, %v without", least, plain)
	}
}

func BenchmarkUnused(b *testing.B) {
	for _, u := range unused {
		for name, plugins := range map[string][]gorm.Plugin{"plain": nil, "plugin": {gormlock.New()}} {
			b.Run(u.name+"/"+name, func(b *testing.B) {
				db := idle(b, u.notes, gorm.Config{}, plugins...)
				b.ReportAllocs()
				for b.Loop() {
					if err := u.run(db); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
	for name, opts := range map[string][]pgtest.Option{"plain": nil, "plugin": {pgtest.Plugin(gormlock.New())}} {
		b.Run("create on a server/"+name, func(b *testing.B) {
			db := pgtest.Open(b, append(opts, pgtest.Schema())...)
			if err := db.AutoMigrate(&note{}); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := db.Create(&note{Title: "t"}).Error; err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTransaction measures what a transaction that gormlock sees the end of costs over the plain one.
func BenchmarkTransaction(b *testing.B) {
	for name, plugins := range map[string][]gorm.Plugin{
		"plain": nil, "plugin": {gormlock.New()}, "plugin with PlainTransactions": {gormlock.New(gormlock.PlainTransactions())},
	} {
		b.Run(name, func(b *testing.B) {
			db := idle(b, 1, gorm.Config{}, plugins...)
			b.ReportAllocs()
			for b.Loop() {
				if err := db.Transaction(func(tx *gorm.DB) error { return tx.Exec("UPDATE notes SET title = 'x'").Error }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
