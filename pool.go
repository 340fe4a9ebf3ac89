package gormlock

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"slices"
	"sync"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/sqltx"
)

// connPool stands in GORM for the application's *sql.DB. Its transactions can begin with locks and have a journal.
type connPool struct {
	*sql.DB
	transactions *sqltx.Pool
	plugin       *Plugin
}

// replacePool puts a connPool in the place of the *sql.DB of db, under GORM's cache of prepared statements if there is
// one. Any other pool, such as a single connection, stays.
func (p *Plugin) replacePool(db *gorm.DB) {
	wrap := func(pool gorm.ConnPool) gorm.ConnPool {
		if plain, ok := pool.(*sql.DB); ok && plain != nil {
			return p.poolOver(plain)
		}
		return pool
	}
	if prepared, ok := db.ConnPool.(*gorm.PreparedStmtDB); ok {
		prepared.Close() // what was prepared on the *sql.DB itself does not run in the transactions of the connPool
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
func (p *connPool) BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error) {
	request := requestIn(ctx)
	if opts == nil {
		opts = &sql.TxOptions{}
	} else if asked, ok := openings.Load(opts); ok {
		request = asked.(*advisory.Request)
	}
	p.plugin.keyNames.note(p.DB, request)
	began := p.plugin.began()
	j := &journal{begunWith: request}
	tx, err := p.begin(ctx, *opts, j, keepsSnapshot(opts.Isolation))
	if opts.Isolation == sql.LevelDefault && errors.Is(err, ErrSnapshotTaken) {
		// The default of this database is an isolation level that keeps one snapshot.
		tx, err = p.begin(ctx, *opts, j, true)
	}
	p.plugin.tellLocks(ctx, request, began, j, err)
	return tx, err
}

func (p *connPool) begin(ctx context.Context, opts sql.TxOptions, j *journal, snapshot bool) (*sql.Tx, error) {
	request := j.begunWith
	opening := sqltx.Opening{Options: opts, Watcher: j}
	if request != nil {
		locks := request.Opening(snapshot)
		opening.Before, opening.After = locks.Before, locks.After
		opening.Opened, opening.Clean = locks.Opened, locks.Clean
	}
	tx, err := p.transactions.Begin(ctx, opening)
	if err != nil {
		return nil, err
	}
	j.of(tx)
	return tx, nil
}

func keepsSnapshot(level sql.IsolationLevel) bool {
	return level >= sql.LevelRepeatableRead
}

// PrepareContext prepares a statement for use inside and outside of the pool's transactions.
func (p *connPool) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return p.transactions.PrepareContext(ctx, query)
}

// GetDBConn is the *sql.DB the application opened: db.DB().
func (p *connPool) GetDBConn() (*sql.DB, error) { return p.DB, nil }

// choosePool picks the pool on which GORM begins its own transaction for a statement. Where nothing in it can need a
// journal that is the plain *sql.DB: no round trip, no allocation more than without the plugin. Where something can, a
// plain *sql.DB, which GORM's dbresolver or an older session may bring, gets a connPool in front.
func choosePool(db *gorm.DB, locked bool) {
	if db.SkipDefaultTransaction || db.Error != nil {
		return
	}
	needed := locked || needsJournal(db, db.Statement.Schema)
	switch pool := db.Statement.ConnPool.(type) {
	case *connPool:
		if !needed {
			db.Statement.ConnPool = pool.DB
		}
	case *sql.DB:
		if p := pluginOf(db); needed && p != nil && !p.plainTransactions && pool != nil {
			db.Statement.ConnPool = p.poolOver(pool)
		}
	}
}

// poolOver is the one connPool over plain that the plugin keeps.
func (p *Plugin) poolOver(plain *sql.DB) *connPool {
	pool, ok := p.pools.Load(plain)
	if !ok {
		pool, _ = p.pools.LoadOrStore(plain, &connPool{plain, sqltx.New(plain), p})
	}
	return pool.(*connPool)
}

// resumePool takes choosePool back where no transaction was begun.
func resumePool(db *gorm.DB) {
	plain, ok := db.Statement.ConnPool.(*sql.DB)
	if pool, replaced := db.ConnPool.(*connPool); ok && replaced && pool.DB == plain {
		db.Statement.ConnPool = pool
	}
}

// needsJournal reports whether a statement on the model, its associations and their hooks included, can change memory
// that a rollback must put right: a gormlock tag, or a hook, which may do anything.
func needsJournal(db *gorm.DB, model *schema.Schema) bool {
	if model == nil {
		return false
	}
	if known, ok := journalNeeds.Load(model); ok {
		return known.(bool)
	}
	needs := reachesJournal(db, model, map[*schema.Schema]bool{})
	journalNeeds.Store(model, needs)
	return needs
}

var journalNeeds sync.Map // *schema.Schema → bool

func reachesJournal(db *gorm.DB, model *schema.Schema, seen map[*schema.Schema]bool) bool {
	if model == nil || seen[model] {
		return false
	}
	seen[model] = true
	_ = (&gorm.Statement{DB: db}).Parse(reflect.New(model.ModelType).Interface()) // which waits for another goroutine that is at it
	if model.BeforeCreate || model.AfterCreate || model.BeforeUpdate || model.AfterUpdate ||
		model.BeforeDelete || model.AfterDelete || model.BeforeSave || model.AfterSave {
		return true
	}
	for _, field := range model.Fields {
		if field.Tag.Get("gormlock") != "" {
			return true
		}
	}
	for _, relation := range ownRelations(model) {
		if reachesJournal(db, relation.FieldSchema, seen) || reachesJournal(db, relation.JoinTable, seen) {
			return true
		}
	}
	return false
}

// ownRelations are the relations that the model has fields for. In its map GORM keeps those that lead to it as well, by
// fields of other models, and goes on to put them in when it meets another.
func ownRelations(s *schema.Schema) []*schema.Relationship {
	r := &s.Relationships
	return slices.Concat(r.HasOne, r.HasMany, r.BelongsTo, r.Many2Many)
}
