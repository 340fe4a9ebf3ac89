package journal

import (
	"context"
	"database/sql"
	"errors"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/cause"
	"github.com/gormlock/gormlock/internal/dialect"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/sqltx"
	"github.com/gormlock/gormlock/internal/statement"
)

// DatabaseUnder is the *sql.DB under a pool, nil when there is none.
func DatabaseUnder(pool gorm.ConnPool) *sql.DB {
	switch pool := pool.(type) {
	case *ConnPool:
		return pool.DB
	case *sql.DB:
		return pool
	case *gorm.PreparedStmtDB:
		return DatabaseUnder(pool.ConnPool)
	case *statement.Columns:
		return DatabaseUnder(pool.ConnPool)
	}
	return nil
}

// ConnPool replaces the application's *sql.DB in GORM. Its transactions can begin with locks and have a journal.
type ConnPool struct {
	*sql.DB
	transactions *sqltx.Pool
	plugin       *install.Settings
	implicit     bool // the server commits before each statement that creates, changes or drops a table
}

// ReplacePool replaces the *sql.DB of db by a ConnPool, under GORM's cache of prepared statements if there is
// one. Any other pool, such as a single connection, stays.
func ReplacePool(s *install.Settings, db *gorm.DB) {
	wrap := func(pool gorm.ConnPool) gorm.ConnPool {
		if plain, ok := pool.(*sql.DB); ok && plain != nil {
			return poolOver(s, plain, db)
		}
		return pool
	}
	if prepared, ok := db.ConnPool.(*gorm.PreparedStmtDB); ok {
		prepared.Close() // statements prepared on the *sql.DB itself do not run in the transactions of the pool
		prepared.ConnPool = wrap(prepared.ConnPool)
		return
	}
	db.ConnPool = wrap(db.ConnPool)
	if db.Statement != nil {
		db.Statement.ConnPool = db.ConnPool
	}
}

// BeginTx begins a transaction that has a journal, with the locks that a statement (in ctx) or Transaction (by opts)
// asks for.
func (p *ConnPool) BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error) {
	request := RequestIn(ctx)
	var options sql.TxOptions
	if opts != nil {
		options = *opts
		if asked, ok := openings.Load(opts); ok {
			request = asked.(*lockrequest.Request)
		}
	}
	if request != nil {
		p.plugin.KeyNames.Note(p.DB, request)
	}
	began := p.plugin.Began()
	j := &journal{beginning: beginning{BegunWith: request, plugin: p.plugin, database: p.DB}}
	tx, err := p.begin(ctx, options, j, keepsSnapshot(options.Isolation))
	if options.Isolation == sql.LevelDefault && errors.Is(err, advisory.ErrSnapshotTaken) {
		// The default level of this database keeps one snapshot for the whole transaction.
		tx, err = p.begin(ctx, options, j, true)
	}
	if request != nil && errors.Is(err, advisory.ErrServer) {
		err = request.Named(ctx, p.DB, err)
	}
	TellLocks(ctx, p.plugin, request, began, j, err)
	return tx, cause.Add(ctx, err)
}

func (p *ConnPool) begin(ctx context.Context, opts sql.TxOptions, j *journal, snapshot bool) (*sql.Tx, error) {
	request := j.BegunWith
	j.opening = sqltx.Opening{Options: opts, Watcher: j, Implicit: p.implicit}
	if request != nil {
		j.locks = request.Opening(snapshot)
		j.opening.Texts = &j.locks
	}
	tx, err := p.transactions.Begin(ctx, &j.opening)
	if err != nil {
		return nil, err
	}
	j.of(tx)
	return tx, nil
}

func keepsSnapshot(level sql.IsolationLevel) bool {
	return level >= sql.LevelRepeatableRead
}

// ExecContext overrides that of the *sql.DB, as do the two below: what is outside of a transaction is sent once.
func (p *ConnPool) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return p.transactions.ExecContext(ctx, query, args...)
}

// QueryContext is for a query.
func (p *ConnPool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return p.transactions.QueryContext(ctx, query, args...)
}

// QueryRowContext is for one row.
func (p *ConnPool) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return p.transactions.QueryRowContext(ctx, query, args...)
}

// SendsOnce says so: see MaySendTwice.
func (*ConnPool) SendsOnce() {}

// PrepareContext prepares a statement for use inside and outside of the pool's transactions.
func (p *ConnPool) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return p.transactions.PrepareContext(ctx, query)
}

// GetDBConn is the *sql.DB the application opened: db.DB().
func (p *ConnPool) GetDBConn() (*sql.DB, error) { return p.DB, nil }

// ChoosePool picks the pool on which GORM begins its own transaction for a statement. If nothing in the statement needs a
// journal, that is the plain *sql.DB, without a round trip or allocation more than in plain GORM. Otherwise it is a
// ConnPool, even if GORM's dbresolver or an older session brings a plain *sql.DB.
func ChoosePool(db *gorm.DB, needed bool) {
	AtWork(db)
	if db.SkipDefaultTransaction || db.Error != nil {
		return
	}
	switch pool := db.Statement.ConnPool.(type) {
	case *ConnPool:
		if !needed {
			db.Statement.ConnPool = pool.DB
		}
	case *sql.DB:
		if s := install.Of(db); needed && s != nil && !s.PlainTransactions && pool != nil {
			db.Statement.ConnPool = poolOver(s, pool, db)
		}
	}
}

// PoolOver is the pool that sends each statement once, for a plugin that is installed in db.
func PoolOver(db *gorm.DB, plain *sql.DB) *ConnPool { return poolOver(install.Of(db), plain, db) }

// poolOver returns the one ConnPool over plain that the plugin keeps.
func poolOver(s *install.Settings, plain *sql.DB, db *gorm.DB) *ConnPool {
	pool, ok := s.Pools.Load(plain)
	if !ok {
		made := sqltx.NewOther
		if dialect.Of(db).IsPostgres() {
			made = sqltx.New
		}
		pool, _ = s.Pools.LoadOrStore(plain, &ConnPool{plain, made(plain), s, dialect.Of(db).CommitsTables()})
	}
	return pool.(*ConnPool)
}

// ResumePool undoes ChoosePool if no transaction was begun.
func ResumePool(db *gorm.DB) {
	plain, ok := db.Statement.ConnPool.(*sql.DB)
	if pool, replaced := db.ConnPool.(*ConnPool); ok && replaced && pool.DB == plain {
		db.Statement.ConnPool = pool
	}
}

// ClosePools ends the goroutines that the pools of a plugin keep.
func ClosePools(s *install.Settings) error {
	var err error
	s.Pools.Range(func(_, pool any) bool {
		err = errors.Join(err, pool.(*ConnPool).transactions.Close()) //nolint:forcetypeassert // poolOver stored it
		return true
	})
	return err
}

var (
	_ gorm.TxBeginner     = (*ConnPool)(nil)
	_ gorm.GetDBConnector = (*ConnPool)(nil)
)
