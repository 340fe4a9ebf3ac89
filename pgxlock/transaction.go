package pgxlock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/absent"
	"github.com/gormlock/gormlock/internal/cause"
	"github.com/gormlock/gormlock/internal/lockrequest"
	"github.com/gormlock/gormlock/internal/repeat"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

// Beginner is what [Transaction] begins on: a *pgxpool.Pool, a *pgxpool.Conn, a *pgx.Conn, or a pgx.Tx, in which it is
// a savepoint. A wrapper of one of these needs BeginTx too, unless it is a transaction.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// rollbackWithin bounds a ROLLBACK, which waits for no lock.
const rollbackWithin = 5 * time.Second

// Transaction runs fn in a transaction, which is committed if fn returns nil and rolled back if it returns an error or
// panics. It is pgx.BeginTxFunc with locks and retries:
//
//	err := pgxlock.Transaction(ctx, pool, func(tx pgx.Tx) error { … },
//		pgxlock.Locking(key, advisory.Timeout(time.Second)), pgxlock.Attempts(20))
//
// fn may run several times with [Attempts]: what it does outside of the transaction must be repeatable, and it must read
// inside the transaction what its decisions depend on. Attempts counts the runs of this call only.
//
// On a pgx.Tx it is a savepoint. Its locks are taken at its start, in a round trip of their own, and freed if it is
// rolled back. It does not run again there, because only the outer transaction can be repeated as a whole. An
// [Isolation] is an error there, because the outer transaction has begun.
//
// A lock that is refused leaves the connection as it was. When ctx ends during a statement pgx closes it. A ROLLBACK is
// sent even if ctx has ended.
func Transaction(ctx context.Context, db Beginner, fn func(tx pgx.Tx) error, opts ...TxOption) error {
	switch {
	case absent.Is(db):
		return fmt.Errorf("%w: db is nil, there is nothing to begin a transaction on", advisory.ErrOption)
	case fn == nil:
		return fmt.Errorf("%w: a nil function", advisory.ErrOption)
	}
	c := &call{}
	for _, o := range opts {
		if o == nil {
			return fmt.Errorf("%w: a nil option", advisory.ErrOption)
		}
		if err := o.apply(c); err != nil {
			return err
		}
	}
	return cause.Add(ctx, c.run(ctx, db, fn))
}

// call is one call of Transaction.
type call struct {
	request  *lockrequest.Request // all locks together, nil: none
	level    pgx.TxIsoLevel       // "": the database's default
	attempts int
}

// txBeginner begins whole transactions.
type txBeginner interface {
	BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error)
}

func (c *call) run(ctx context.Context, db Beginner, fn func(tx pgx.Tx) error) error {
	switch db := db.(type) {
	case pgx.Tx:
		return c.nested(ctx, db, fn)
	case txBeginner:
		if conn := connOf(db); conn != nil && !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
			return fmt.Errorf("%w: the connection is already in a transaction, give its pgx.Tx", advisory.ErrOption)
		}
		budget := repeat.Budget{Attempts: c.attempts, RetryIf: isRetryable}
		return budget.Run(ctx, func() error {
			tx, err := c.begin(ctx, db)
			if err != nil {
				return err
			}
			return finish(ctx, tx, fn)
		})
	}
	return fmt.Errorf("%w: %T has no BeginTx, and is no transaction", advisory.ErrOption, db)
}

// isRetryable reports whether running the whole transaction again can cure err.
func isRetryable(err error) bool {
	return sqlstate.Is(err, sqlstate.SerializationFailure, sqlstate.DeadlockDetected)
}

// nested runs fn under a savepoint.
func (c *call) nested(ctx context.Context, outer pgx.Tx, fn func(tx pgx.Tx) error) error {
	if c.level != "" {
		return fmt.Errorf("%w: Isolation cannot change a transaction that is already open", advisory.ErrOption)
	}
	tx, err := outer.Begin(ctx)
	if err != nil {
		return err
	}
	return finish(ctx, tx, func(tx pgx.Tx) error {
		if c.request != nil {
			if err := c.request.Acquire(ctx, executor{tx}); err != nil {
				return err
			}
		}
		return fn(tx)
	})
}

// begin begins a transaction that holds the locks.
func (c *call) begin(ctx context.Context, db txBeginner) (pgx.Tx, error) {
	if c.request == nil {
		return db.BeginTx(ctx, pgx.TxOptions{IsoLevel: c.level})
	}
	keeps := c.level == pgx.RepeatableRead || c.level == pgx.Serializable
	tx, err := c.beginLocked(ctx, db, keeps)
	if c.level == "" && errors.Is(err, advisory.ErrSnapshotTaken) {
		// The default of this database is an isolation level that keeps one snapshot.
		return c.beginLocked(ctx, db, true)
	}
	return tx, err
}

// beginLocked sends locks and BEGIN together. pgx hands on nothing of a BEGIN but its error, so that is what refuses.
func (c *call) beginLocked(ctx context.Context, db txBeginner, snapshot bool) (pgx.Tx, error) {
	if err := ctx.Err(); err != nil {
		return nil, c.request.Verdict(ctx, err)
	}
	tx, err := db.BeginTx(ctx, pgx.TxOptions{BeginQuery: c.request.Leading(string(c.level), snapshot)})
	if err == nil {
		return tx, nil
	}
	if conn := connOf(db); conn != nil && conn.PgConn().TxStatus() != 'I' {
		// A pool closes it itself. It is inside of a transaction, and may hold the lock.
		_ = conn.Close(context.WithoutCancel(ctx))
	}
	return nil, c.request.Named(ctx, asker{db}, c.request.Verdict(ctx, err))
}

// asker asks a server outside of any transaction, where the beginner can.
type asker struct{ db txBeginner }

func (a asker) ExecContext(ctx context.Context, query string, _ ...any) (sql.Result, error) {
	if db, ok := a.db.(interface {
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	}); ok {
		tag, err := db.Exec(ctx, query)
		return driver.RowsAffected(tag.RowsAffected()), err
	}
	return driver.RowsAffected(0), nil
}

// connOf is the connection that the caller goes on using, nil where a pool picks one for each transaction.
func connOf(db txBeginner) *pgx.Conn {
	switch db := db.(type) {
	case *pgx.Conn:
		return db
	case interface{ Conn() *pgx.Conn }:
		return db.Conn()
	}
	return nil
}

// finish runs fn and ends the transaction, whatever fn does.
func finish(ctx context.Context, tx pgx.Tx, fn func(tx pgx.Tx) error) error {
	open := true
	defer func() {
		if open { // fn failed, panicked or ended the goroutine: its own error counts
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackWithin)
			defer cancel()
			_ = tx.Rollback(ctx)
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	open = false
	return tx.Commit(ctx)
}
