package journal

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/sqltx"
	"github.com/gormlock/gormlock/internal/statement"
)

// Within runs fn, and fails if a write in fn was stale, even if fn dropped the error.
func Within(tx *gorm.DB, fn func(tx *gorm.DB) error) (err error) {
	leave := Of(tx.Statement).enter()
	defer func() {
		if stale := leave(); err == nil {
			err = stale
		}
	}()
	return fn(tx)
}

// Begin begins a transaction with these locks; nil: none. It passes them to the pool under the address of the options, because that is all
// that GORM passes on unchanged.
func Begin(db *gorm.DB, opts *sql.TxOptions, request *lockrequest.Request) *gorm.DB {
	if request != nil && !db.DryRun {
		openings.Store(opts, request)
		defer openings.Delete(opts)
	}
	return db.Begin(opts)
}

// openings holds the locks of transactions that Begin is beginning, by *sql.TxOptions.
var openings sync.Map

// BegunWith reports whether the locks travelled with the BEGIN.
func BegunWith(tx *gorm.DB, request *lockrequest.Request) bool {
	j := Of(tx.Statement)
	return j != nil && j.BegunWith == request
}

// Watch gives the transaction a journal if the pool on which it began gave it none. It returns a function to call at the end.
func Watch(tx *gorm.DB) (ended func(committed bool)) {
	j := watch(tx.Statement)
	if j == nil {
		return func(bool) {}
	}
	return j.Ended
}

// Commit commits a transaction that Begin has begun. If its connection reports nothing to the journal, the journal is asked first whether a
// text has already rolled the transaction back. The pool does so for its own transactions.
func Commit(tx *gorm.DB) error {
	j := Of(tx.Statement)
	if j == nil || !j.deaf {
		return tx.Commit().Error
	}
	if err := j.Commit(); err != nil {
		tx.Rollback()
		return err
	}
	err := tx.Commit().Error
	if isUnanswered(tx, err) {
		j.InDoubt()
		err = sqltx.InDoubt(err)
	}
	return err
}

// watch returns a new journal for a transaction that has none. It returns nil if there is one, or if nothing identifies
// the transaction.
func watch(stmt *gorm.Statement) *journal {
	pool := statement.Unprepared(stmt.ConnPool)
	if statement.Transaction(stmt) == nil || !isKey(pool) || Of(stmt) != nil {
		return nil
	}
	j := &journal{beginning: beginning{deaf: true, plugin: install.Of(stmt.DB)}}
	j.database, _ = databaseOf(stmt, nil).(*sql.DB)
	j.of(pool)
	return j
}

// Adopt gives a journal to a transaction that was begun for this statement alone. End ends the transaction, and Leave is called after that.
func Adopt(db *gorm.DB) {
	if db.Error != nil || db.DryRun {
		return
	}
	if j := watch(db.Statement); j != nil {
		j.alone = true
		adopted.Store(db.Statement, j)
	}
}

// Leave is called at the end of a statement. If the statement failed, it has restored its structs by then. Leave ends the journal that Adopt
// gave, if End was not called.
func Leave(db *gorm.DB) {
	if j := Of(db.Statement); j != nil {
		j.settled()
	}
	if db.Error != nil {
		db.Statement.Settings.Delete(inDoubt{})
	}
	if j, ok := adopted.LoadAndDelete(db.Statement); ok {
		j.(*journal).Ended(db.Error == nil)
	}
}

// adopted holds the journals of Adopt by their *gorm.Statement.
var adopted sync.Map

// lockingContext carries a request from a statement to the BEGIN of its transaction, and to no other.
type lockingContext struct {
	context.Context
	request *lockrequest.Request
	spent   atomic.Bool
}

type lockingKey struct{}

func (c *lockingContext) Value(key any) any {
	if key == (lockingKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Carry returns a ctx that carries the request to the BEGIN of its statement's transaction.
func Carry(ctx context.Context, request *lockrequest.Request) context.Context {
	return &lockingContext{Context: ctx, request: request}
}

// Spend removes the request from the ctx, even if somebody has wrapped the ctx meanwhile: hooks begin transactions too, without these locks.
func Spend(ctx context.Context) context.Context {
	if carrying, ok := ctx.Value(lockingKey{}).(*lockingContext); ok {
		carrying.spent.Store(true)
	}
	if carrying, ok := ctx.(*lockingContext); ok {
		return carrying.Context
	}
	return ctx
}

// RequestIn is the request that ctx carries, nil if it carries none or the request was spent.
func RequestIn(ctx context.Context) *lockrequest.Request {
	carrying, ok := ctx.Value(lockingKey{}).(*lockingContext)
	if !ok || carrying.spent.Load() {
		return nil
	}
	return carrying.request
}
