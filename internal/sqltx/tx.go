package sqltx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gormlock/gormlock/internal/sqlstate"
)

// lentTx is the transaction that database/sql commits or rolls back, once.
type lentTx struct {
	conn      *loan
	tx        driver.Tx          // the driver's, or a textTx
	interrupt context.CancelFunc // ends the ctx that tx runs under; nil: each step has its own
	forget    func() bool        // stops waiting for the end of the opening's ctx
	over      bool               // it is no longer open on the server, or the connection is given up
	late      bool               // ctx has ended
	done      bool               // the program or the end of ctx has ended it, so the connection no longer belongs to it
	heard     atomic.Bool        // the watcher has heard of the end
	made      *sql.Tx            // the *sql.Tx that the program has
}

// patience is how long a transaction waits for the program to end it after ctx has ended it. Until then its errors name the cause.
const patience = time.Minute

func (t *lentTx) Commit() error {
	t.forget()
	t.conn.mu.Lock()
	t.done = true
	err := t.commit()
	t.conn.mu.Unlock()
	t.ended(err == nil)
	return err
}

func (t *lentTx) Rollback() error {
	t.forget()
	t.conn.mu.Lock()
	t.done = true
	t.conn.catchUp()
	var err error
	if !t.over {
		err = t.rollback()
	}
	t.conn.mu.Unlock()
	t.ended(false)
	return err
}

func (t *lentTx) commit() error {
	c := t.conn
	if t.over {
		return c.expired
	}
	c.catchUp()
	if err := c.opening.ended(); err != nil {
		_ = t.rollback()
		return err
	}
	if c.opening.Watcher != nil {
		if refusal := c.opening.Watcher.Commit(); refusal != nil {
			_ = t.rollback() // if this fails the connection is closed, which rolls back
			return refusal
		}
	}
	if t.interrupt != nil {
		stop := afterEnd(c.opening.ctx, t.interrupt)
		defer stop()
	}
	sent := c.status() != Gone && c.status() != Aborted // an aborted transaction cannot be committed
	err := t.tx.Commit()
	t.over = true
	c.clean = err == nil || c.reusable(err)
	if err != nil && sent && (c.status() == Gone || !c.clean || sqlstate.Of(err) != "" && !sqlstate.TakesBack(err)) {
		err = t.doubt(err)
	}
	return c.opening.because(err)
}

// doubt tells the watcher that a commit got no answer.
func (t *lentTx) doubt(err error) error {
	if watcher := t.conn.opening.Watcher; watcher != nil {
		watcher.InDoubt()
	}
	return InDoubt(err)
}

// InDoubt is the error of a commit that got no answer: the server may have committed. It must not wrap an error that means that nothing was done:
// driver.ErrBadConn, or "conn closed" of pgx.
func InDoubt(err error) error {
	if errors.Is(err, driver.ErrBadConn) || sqlstate.IsUnsent(err) {
		return errors.New("gormlock: whether this transaction was committed is not known, the connection ended before the server answered")
	}
	return fmt.Errorf("gormlock: whether this transaction was committed is not known: %w", err)
}

func (t *lentTx) rollback() error {
	done := t.bound()
	defer done()
	err := t.tx.Rollback()
	t.over = true
	t.conn.clean = err == nil
	return err
}

// abandon ends the transaction on the server, unless it is over there, and gives the connection back before database/sql knows of it.
func (t *lentTx) abandon() {
	if t.done {
		return
	}
	t.done = true
	if !t.over {
		_ = t.rollback()
	}
	if watcher := t.conn.opening.Watcher; watcher != nil {
		watcher.Abandoned()
	}
	t.conn.giveBack()
	t.outwait()
}

// outwait sets a timer that ends the *sql.Tx of an abandoned transaction if the program does not end it in time.
func (t *lentTx) outwait() {
	if t.made == nil {
		return
	}
	p := t.conn.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.abandoned == nil {
		p.abandoned = map[*lentTx]*time.Timer{}
	}
	p.abandoned[t] = time.AfterFunc(p.patience, t.endForgotten)
}

// endForgotten ends the *sql.Tx of an abandoned transaction. The structs that it wrote belong to the program's goroutines, so the Watcher only
// forgets the transaction: Ended is not called.
func (t *lentTx) endForgotten() {
	p := t.conn.pool
	p.mu.Lock()
	if timer := p.abandoned[t]; timer != nil {
		timer.Stop()
		delete(p.abandoned, t)
	}
	p.mu.Unlock()
	if t.heard.Swap(true) {
		return
	}
	if watcher := t.conn.opening.Watcher; watcher != nil {
		watcher.Forgotten()
	}
	_ = t.made.Rollback()
}

// isMade tells the transaction which *sql.Tx the program has.
func (c *loan) isMade(made *sql.Tx) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own.made = made; c.own.late && c.own.done {
		c.own.outwait()
	}
}

func (t *lentTx) ended(committed bool) {
	if t.interrupt != nil {
		t.interrupt()
	}
	t.tell(committed)
}

// tell tells the watcher of the end, once.
func (t *lentTx) tell(committed bool) {
	if t.conn.opening.Watcher == nil || t.heard.Swap(true) {
		return
	}
	heard := false
	defer func() {
		if !heard { // the watcher panics, and database/sql will not close the connection
			t.conn.end()
		}
	}()
	t.conn.opening.Watcher.Ended(committed)
	heard = true
}

// textTx is a transaction that was begun by a text, so that statements could travel with its BEGIN.
type textTx struct{ conn *loan }

// Commit fails in an aborted transaction. A COMMIT alone would not: the server answers it with a rollback, and database/sql
// does not pass that answer on. So a statement before the COMMIT must fail. It is left out if the driver reports that the
// transaction is not aborted.
func (t textTx) Commit() error {
	commit := "SELECT 1; COMMIT"
	if t.conn.status() == Open {
		commit = "COMMIT"
	}
	_, err := t.conn.exec(t.conn.opening.ctx, commit, nil)
	if sqlstate.Is(err, sqlstate.InFailedSQLTransaction) {
		if rollback := t.Rollback(); rollback != nil {
			return errors.Join(err, driver.ErrBadConn)
		}
		return fmt.Errorf("gormlock: nothing was committed: an earlier statement failed, and the transaction was rolled back: %w", err)
	}
	return err
}

func (t textTx) Rollback() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.conn.opening.ctx), rollbackTime)
	defer cancel()
	_, err := t.conn.exec(ctx, "ROLLBACK", nil)
	return err
}

// beginText returns the statement that begins a transaction, in the SQL of PostgreSQL and its relatives.
func beginText(opts driver.TxOptions) (string, error) {
	text := "BEGIN"
	switch sql.IsolationLevel(opts.Isolation) {
	case sql.LevelDefault:
	case sql.LevelReadUncommitted:
		text += " ISOLATION LEVEL READ UNCOMMITTED"
	case sql.LevelReadCommitted:
		text += " ISOLATION LEVEL READ COMMITTED"
	case sql.LevelRepeatableRead, sql.LevelSnapshot:
		text += " ISOLATION LEVEL REPEATABLE READ"
	case sql.LevelSerializable:
		text += " ISOLATION LEVEL SERIALIZABLE"
	default:
		return "", fmt.Errorf("gormlock: unsupported isolation level %s", sql.IsolationLevel(opts.Isolation))
	}
	if opts.ReadOnly {
		text += " READ ONLY"
	}
	return text, nil
}
