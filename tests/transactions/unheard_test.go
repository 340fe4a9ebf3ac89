package transactions_test

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/internal/wiretap"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

type unheard struct {
	ID      int64
	N       int64
	Version int64 `gorm:"not null;default:1" gormlock:"version"`
}

// unheardWrites change the row of the struct once, by these names, or its table.
var unheardWrites = map[string]func(db *gorm.DB, row *unheard) error{
	"Save":    func(db *gorm.DB, row *unheard) error { row.N++; return db.Save(row).Error },
	"Update":  func(db *gorm.DB, row *unheard) error { return db.Model(row).Update("n", gorm.Expr("n + 1")).Error },
	"Touch":   func(db *gorm.DB, row *unheard) error { return gormlock.Touch(db, row) },
	"Delete":  func(db *gorm.DB, row *unheard) error { return db.Delete(row).Error },
	"a slice": func(db *gorm.DB, row *unheard) error { return db.Model(&[]*unheard{row}).Update("n", 1).Error },
	"Create":  func(db *gorm.DB, _ *unheard) error { return db.Create(&unheard{}).Error },
	"Claim": func(db *gorm.DB, _ *unheard) error {
		rows, err := gormlock.Claim[unheard](db, 1, map[string]any{"N": 1}, func(q *gorm.DB) *gorm.DB { return q.Where("n = 0") })
		if err == nil && len(rows) != 1 {
			return errors.New("nothing is claimed")
		}
		return err
	},
	"SweepOnce": func(db *gorm.DB, _ *unheard) error {
		n, err := gormlock.SweepOnce(db, time.Hour, 1)
		if err == nil && n != 1 {
			return errors.New("nothing is swept")
		}
		return err
	},
}

// A statement outside of a transaction whose answer is lost is never sent again, even if pgx says that it was not sent. An error that means
// that nothing was done says the truth.
func TestUnheard(t *testing.T) {
	t.Parallel()
	type setting struct {
		plugin []gormlock.Option
		open   []pgtest.Option
		with   func(db *gorm.DB) *gorm.DB
	}
	same := func(db *gorm.DB) *gorm.DB { return db }
	for name, s := range map[string]setting{
		"as it comes":             {with: same},
		"other modes":             {open: []pgtest.Option{pgtest.Param("default_query_exec_mode", "cache_statement")}, with: same},
		"PrepareStmt":             {open: []pgtest.Option{pgtest.PrepareStmt()}, with: same},
		"a session that prepares": {with: func(db *gorm.DB) *gorm.DB { return db.Session(&gorm.Session{PrepareStmt: true}) }},
		"plain transactions":      {plugin: []gormlock.Option{gormlock.PlainTransactions()}, with: same},
		"plain, PrepareStmt":      {plugin: []gormlock.Option{gormlock.PlainTransactions()}, open: []pgtest.Option{pgtest.PrepareStmt()}, with: same},
		"a wrapped pool": {with: func(db *gorm.DB) *gorm.DB {
			db = db.Session(&gorm.Session{})
			db.Statement.ConnPool = &stand.WrappedPool{ConnPool: db.ConnPool}
			return db
		}},
		"a wrapper of pgx":              {open: []pgtest.Option{pgtest.Wrapped()}, with: same},
		"a wrapper of pgx, PrepareStmt": {open: []pgtest.Option{pgtest.Wrapped(), pgtest.PrepareStmt()}, with: same},
		"a wrapper of pgx, other modes": {open: []pgtest.Option{pgtest.Wrapped(), pgtest.Param("default_query_exec_mode", "cache_statement")}, with: same},
		"a wrapper of pgx, plain":       {plugin: []gormlock.Option{gormlock.PlainTransactions()}, open: []pgtest.Option{pgtest.Wrapped()}, with: same},
		"a pool of its own": {with: func(db *gorm.DB) *gorm.DB {
			pool, _ := db.DB()
			db = db.Session(&gorm.Session{})
			db.Statement.ConnPool = pool
			return db
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			direct := pgtest.SchemaDSN(t)
			proxy, dsn := pgtest.Tap(t, direct)
			plugin := gormlock.New(s.plugin...)
			t.Cleanup(func() { _ = plugin.Close() })
			opts := append([]pgtest.Option{pgtest.Through(dsn), pgtest.Plugin(plugin), pgtest.SkipDefaultTransaction()}, s.open...)
			if !strings.HasSuffix(name, "other modes") {
				opts = append(opts, pgtest.SimpleProtocol())
			}
			db := pgtest.Open(t, opts...)
			stand.Must(t, db.AutoMigrate(&unheard{}))
			stand.Must(t, gormlock.MigrateOnce(db))
			line := &cutLine{proxy, s.with(db), pgtest.SQLDB(t, pgtest.Through(direct))}
			for what, write := range unheardWrites {
				for answer, cut := int64(1), true; cut; answer++ {
					cut = line.lose(t, what, write, answer)
				}
			}
		})
	}
}

// cutLine is a database behind a line that can be cut, and one beside it.
type cutLine struct {
	proxy  *wiretap.Proxy
	db     *gorm.DB
	beside *sql.DB
}

// lose loses an answer of a write, and reports whether there was one.
func (l *cutLine) lose(t *testing.T, what string, write func(db *gorm.DB, row *unheard) error, answer int64) (cut bool) {
	t.Helper()
	_, err := l.beside.ExecContext(t.Context(), `TRUNCATE unheards, gormlock_once;
		INSERT INTO unheards (n) VALUES (0); INSERT INTO gormlock_once (key, created_at) VALUES ('a', '2000-01-01')`)
	stand.Must(t, err)
	var row unheard
	pgtest.Eventually(t, "no connection of the pool is one that was cut", func() bool { return l.db.First(&row).Error == nil })
	var sent atomic.Int64
	l.proxy.OnQuery(func(string) wiretap.Action {
		if sent.Add(1) == answer {
			return wiretap.CutAnswer
		}
		return wiretap.Pass
	})
	err = write(l.db, &row)
	l.proxy.OnQuery(nil)
	var n int
	stand.Must(t, l.beside.QueryRowContext(t.Context(), `SELECT (SELECT coalesce(sum(version - 1), 1) + greatest(count(*) - 1, 0) FROM unheards) +
		(SELECT 1 - count(*) FROM gormlock_once)`).Scan(&n))
	if errors.Is(err, gormlock.ErrStale) || gormlock.IsRetryable(err) || n > 1 || err == nil && n != 1 || errors.Is(err, driver.ErrBadConn) && n > 0 {
		t.Errorf("%s, answer %d of %d is lost, %d changes: %v", what, answer, sent.Load(), n, err)
	}
	return sent.Load() >= answer
}
