package gormlock_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// seat is a row to lock: of a hall, with tickets.
type seat struct {
	ID      int64
	Name    string
	HallID  int64
	Hall    *hall
	Tickets []ticket

	hook func(tx *gorm.DB) error
}

func (s *seat) BeforeCreate(tx *gorm.DB) error {
	if s.hook == nil {
		return nil
	}
	return s.hook(tx)
}

type hall struct {
	ID   int64
	Name string
}

type ticket struct {
	ID     int64
	SeatID int64
	Stubs  []stub
}

type stub struct {
	ID       int64
	TicketID int64
}

// seats opens a database of the test's own with the seats 1 to 4, of hall 1, with a ticket and a stub each.
func seats(t testing.TB, opts ...pgtest.Option) *gorm.DB {
	t.Helper()
	db := open(t, opts...)
	if err := db.AutoMigrate(&hall{}, &seat{}, &ticket{}, &stub{}); err != nil {
		t.Fatal(err)
	}
	mustDo(t, db.Create(&hall{ID: 1, Name: "big"}))
	for id := int64(1); id <= 4; id++ {
		mustDo(t, db.Create(&seat{ID: id, HallID: 1, Tickets: []ticket{{ID: id, Stubs: []stub{{ID: id}}}}}))
	}
	return db
}

// open opens a schema of the test's own.
func open(t testing.TB, opts ...pgtest.Option) *gorm.DB {
	t.Helper()
	plugin := gormlock.New()
	t.Cleanup(func() { _ = plugin.Close() })
	return pgtest.Open(t, append([]pgtest.Option{pgtest.Plugin(plugin), pgtest.Schema()}, opts...)...)
}

func mustDo(t testing.TB, db *gorm.DB) *gorm.DB {
	t.Helper()
	if db.Error != nil {
		t.Fatal(db.Error)
	}
	return db
}

func ids(rows []seat) []int64 {
	var ids []int64
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	slices.Sort(ids)
	return ids
}

// rowRival is a session that looks for locked rows, or holds some.
type rowRival struct {
	t    testing.TB
	conn *pgx.Conn
}

func newRowRival(t testing.TB) rowRival {
	t.Helper()
	return rowRival{t, pgtest.Conn(t, pgtest.Schema())}
}

// locked are the ids of the table's rows that somebody else has locked as strongly as FOR NO KEY UPDATE.
func (r rowRival) locked(table string) []int64 { return r.lockedAgainst(table, "FOR NO KEY UPDATE") }

func (r rowRival) lockedAgainst(table, strength string) []int64 {
	r.t.Helper()
	return lockedRows[int64](r, table, "id", strength)
}

// lockedKeys are the rows by an expression of text.
func (r rowRival) lockedKeys(table, key string) []string {
	r.t.Helper()
	return lockedRows[string](r, table, key, "FOR NO KEY UPDATE")
}

func lockedRows[K any](r rowRival, table, key, strength string) []K {
	r.t.Helper()
	rows, err := r.conn.Query(context.Background(), "select "+key+" from "+table+" where ctid not in (select ctid from "+table+" "+strength+" skip locked) order by 1")
	if err != nil {
		r.t.Fatal(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[K])
	if err != nil {
		r.t.Fatal(err)
	}
	return keys
}

// hold locks rows until the returned function is called, which the end of the test does too.
func (r rowRival) hold(query string, args ...any) (release func()) {
	r.t.Helper()
	ctx := context.Background()
	tx, err := r.conn.Begin(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, query, args...); err != nil {
		r.t.Fatal(err)
	}
	release = func() {
		if err := tx.Rollback(ctx); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
			r.t.Errorf("end the rival: %v", err)
		}
	}
	r.t.Cleanup(release)
	return release
}

// inTx runs body in a transaction that is rolled back.
func inTx(t testing.TB, db *gorm.DB, body func(tx *gorm.DB)) {
	t.Helper()
	tx := db.Begin()
	if tx.Error != nil {
		t.Fatal(tx.Error)
	}
	defer tx.Rollback()
	body(tx)
}

// recorder is a pool that remembers what it is asked.
type recorder struct {
	gorm.ConnPool
	mu    sync.Mutex
	texts []string
	args  []any // of the last query
}

// recorded is a session of db whose statements are recorded. What db begins is not.
func recorded(db *gorm.DB) (*gorm.DB, *recorder) {
	session := db.Session(&gorm.Session{NewDB: true})
	session = session.Session(&gorm.Session{Initialized: true})
	r := &recorder{ConnPool: session.Statement.ConnPool}
	if tx, ok := r.ConnPool.(gorm.TxCommitter); ok {
		session.Statement.ConnPool = struct {
			*recorder
			gorm.TxCommitter
		}{r, tx}
	} else {
		session.Statement.ConnPool = r
	}
	return session.Session(&gorm.Session{}), r
}

func (r *recorder) record(query string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.texts = append(r.texts, query)
}

func (r *recorder) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.texts)
}

func (r *recorder) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	r.record(query)
	return r.ConnPool.ExecContext(ctx, query, args...)
}

func (r *recorder) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	r.record(query)
	r.args = args
	return r.ConnPool.QueryContext(ctx, query, args...)
}

func (r *recorder) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	r.record(query)
	return r.ConnPool.QueryRowContext(ctx, query, args...)
}

// fromServer reports whether the server was asked before err came about.
func fromServer(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer)
}

// useReplica sends db's reads to another database.
func useReplica(t testing.TB, db *gorm.DB, dsn string) {
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

// collect is the first column of what a query answers.
func collect(t testing.TB, pool *sql.DB, query string, args ...any) []string {
	t.Helper()
	rows, err := pool.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var found []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		found = append(found, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}
