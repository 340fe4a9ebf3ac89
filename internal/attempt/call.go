package attempt

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/repeat"
	"github.com/gormlock/gormlock/internal/statement"
	"github.com/gormlock/gormlock/internal/xact"
	"github.com/gormlock/gormlock/observe"
)

// Call is one call of Transaction.
type Call struct {
	Locks    []*lockrequest.Request // what each Locking asks for
	Options  sql.TxOptions
	Attempts int           // how often fn may run; 0: once
	Within   time.Duration // the time that the whole call has; 0: no bound
	RetryIf  func(error) bool
	OnRetry  func(attempt int, err error)

	request *lockrequest.Request // all locks together, nil: none
}

// Run runs fn in a transaction that holds the locks, a savepoint where one is open already.
func (c *Call) Run(db *gorm.DB, fn func(tx *gorm.DB) error) error {
	if len(c.Locks) > 0 {
		c.request = c.Locks[0].And(c.Locks[1:]...).Within(install.Of(db).DefaultTimeout).Allowing(install.Of(db).Servers)
		if !statement.IsPostgres(db) && install.Pretended(db) == nil {
			return fault.NoLocks(db.Name(), c.request)
		}
	}
	if c.Within > 0 {
		ctx, cancel := context.WithTimeout(db.Statement.Context, c.Within)
		defer cancel()
		db = statement.Session(db, gorm.Session{Context: ctx})
	}
	if statement.Transaction(db.Statement) != nil {
		return c.nested(db, fn)
	}
	return c.repeat(db, fn)
}

// nested runs fn under a savepoint, also if GORM is to make none of its own: what fn did is not to be committed if it fails.
func (c *Call) nested(db *gorm.DB, fn func(tx *gorm.DB) error) error {
	if c.Options != (sql.TxOptions{}) {
		return fmt.Errorf("%w: Isolation and ReadOnly cannot change a transaction that is already open", fault.ErrOption)
	}
	once := func() error {
		return statement.Nested(db, func(tx *gorm.DB) error {
			if c.request != nil && !tx.DryRun {
				if err := xact.Acquire(tx, c.request); err != nil {
					return err
				}
			}
			return journal.Within(tx, fn)
		})
	}
	return repeat.Budget{Within: c.Within}.Run(db.Statement.Context, once)
}

// repeat runs fn until it succeeds, no other run can cure its error, or attempts or time are used up.
func (c *Call) repeat(db *gorm.DB, fn func(tx *gorm.DB) error) error {
	ctx := db.Statement.Context
	budget := repeat.Budget{Attempts: c.Attempts, Within: c.Within, RetryIf: c.RetryIf, Again: func(attempt int, err error) {
		install.Of(db).Tell(ctx, observe.Event{Kind: observe.Retried, Err: err})
		if c.OnRetry != nil {
			c.OnRetry(attempt, err)
		}
	}}
	return budget.Run(ctx, func() error { return c.once(db, fn) })
}

// once begins, runs fn and ends the transaction, whatever fn does.
func (c *Call) once(db *gorm.DB, fn func(tx *gorm.DB) error) (err error) {
	travels := c.request
	if install.Pretended(db) != nil {
		travels = nil // there is no text for it
	}
	tx := journal.Begin(db, &c.Options, travels)
	if tx.Error != nil {
		return tx.Error
	}
	ended := journal.Watch(tx)
	open := true
	defer func() {
		if open { // fn failed, panicked or ended the goroutine: its own error counts
			tx.Rollback()
			ended(false)
		}
	}()
	if c.request != nil && !tx.DryRun && !journal.BegunWith(tx, c.request) {
		if err := xact.Acquire(tx, c.request); err != nil {
			return err
		}
	}
	if err := journal.Within(tx, fn); err != nil {
		return err
	}
	open = false
	err = journal.Commit(tx)
	ended(err == nil)
	return err
}
