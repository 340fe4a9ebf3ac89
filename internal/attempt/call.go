package attempt

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/fault"
	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/journal"
	"github.com/gormlock/gormlock/internal/lockrequest"
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
		c.request = c.Locks[0].And(c.Locks[1:]...).Within(install.Of(db).DefaultTimeout)
		if !statement.IsPostgres(db) && install.Pretended(db) == nil {
			return fmt.Errorf("%w, not %s: lock %s", fault.ErrNotPostgres, db.Name(), c.request)
		}
	}
	if c.Within > 0 {
		ctx, cancel := context.WithTimeout(db.Statement.Context, c.Within)
		defer cancel()
		db = db.WithContext(ctx)
	}
	if statement.Transaction(db.Statement) != nil {
		return c.nested(db, fn)
	}
	return c.repeat(db, fn)
}

// nested runs fn under a savepoint.
func (c *Call) nested(db *gorm.DB, fn func(tx *gorm.DB) error) error {
	if c.Options != (sql.TxOptions{}) {
		return fmt.Errorf("%w: Isolation and ReadOnly cannot change the transaction that is open already", fault.ErrOption)
	}
	return db.Transaction(func(tx *gorm.DB) error {
		if c.request != nil && !tx.DryRun {
			if err := xact.Acquire(tx, c.request); err != nil {
				return err
			}
		}
		return journal.Within(tx, fn)
	})
}

// repeat runs fn until it succeeds, no other run can cure its error, or attempts or time are used up.
func (c *Call) repeat(db *gorm.DB, fn func(tx *gorm.DB) error) error {
	ctx := db.Statement.Context
	for attempt := 1; ; attempt++ {
		began := time.Now()
		err := c.once(db, fn)
		switch {
		case err == nil:
			return nil
		case c.Within > 0 && errors.Is(ctx.Err(), context.DeadlineExceeded):
			return c.outOfTime(attempt, ctx.Err(), err)
		case c.Attempts <= 1 || !c.RetryIf(err):
			return err
		case attempt == c.Attempts:
			return fmt.Errorf("gormlock: gave up after %d attempts: %w", attempt, fault.Because(err))
		}
		if ended := pause(ctx, attempt, time.Since(began)); ended != nil {
			return c.outOfTime(attempt, ended, err)
		}
		install.Of(db).Tell(ctx, observe.Event{Kind: observe.Retried, Err: err})
		if c.OnRetry != nil {
			c.OnRetry(attempt, err)
		}
	}
}

// outOfTime is the error of a call whose context has ended, with that of its last run.
func (c *Call) outOfTime(attempts int, ended, last error) error {
	within := ""
	if c.Within > 0 && errors.Is(ended, context.DeadlineExceeded) {
		within = fmt.Sprintf(" within %s,", c.Within)
	}
	if errors.Is(last, ended) {
		return fmt.Errorf("gormlock: not done%s after %d attempts: %w", within, attempts, fault.Because(last))
	}
	return fmt.Errorf("gormlock: %w%s after %d attempts: %w", ended, within, attempts, fault.Because(last))
}

// pause waits a random time, on average longer with every attempt and in proportion to what a run takes: rivals meet
// again as often as their runs fill the time over which they are spread.
func pause(ctx context.Context, attempt int, took time.Duration) error {
	const longest = 2 * time.Second
	bound := min(max(took, time.Millisecond)<<min(attempt, 7), longest)
	timer := time.NewTimer(rand.N(bound))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
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
	err = tx.Commit().Error
	ended(err == nil)
	return err
}
