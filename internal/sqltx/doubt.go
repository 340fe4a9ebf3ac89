package sqltx

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/sqltext"
)

// doubt looks at an error: the driver may have given the connection up, or the server may have rolled the transaction
// back. After a rollback each later statement would be committed by itself, so it is refused.
func (c *loan) doubt(err error) {
	if errors.Is(err, driver.ErrBadConn) {
		c.clean = false
	}
	if err == nil || c.tx == nil || c.tx.over {
		return
	}
	if c.implicit == sqltext.Commits && !sqlstate.EndsTransaction(err) { // it may have committed before it failed
		c.followImplicit(c.implicit)
		return
	}
	if !c.hasEnded(err) {
		return
	}
	c.expired = fmt.Errorf("gormlock: the server has rolled this transaction back, nothing more is executed in it: %w", err)
	_ = c.tx.rollback()
}

// whetherOpen is a question that MariaDB answers. MySQL does not know it.
const whetherOpen = "SELECT IF(@@in_transaction,'open','over')"

// followImplicit follows a text of MySQL or MariaDB that may have ended the transaction without a COMMIT. If the server has committed, it
// begins another transaction, so that later statements run in one and row locks last. If a routine has ended the transaction, it is not
// known how, so nothing more is executed.
func (c *loan) followImplicit(how sqltext.Implicit) {
	if c.tx == nil || c.tx.over {
		return
	}
	if over, _ := c.ask(whetherOpen); !over {
		return
	}
	if how == sqltext.Calls {
		c.expired = errors.New("gormlock: a routine has ended this transaction, nothing more is executed in it")
		_ = c.tx.rollback()
		return
	}
	c.opening.Watcher.Executed(sqltext.Text{Single: true, Commands: []sqltext.Command{{Verb: sqltext.Commit, Chain: true, Last: true}}}, Answer{Before: Open, After: Open})
	options := c.opening.Options
	tx, err := c.beginDriver(c.opening.ctx, driver.TxOptions{Isolation: driver.IsolationLevel(options.Isolation), ReadOnly: options.ReadOnly})
	if err != nil {
		c.expired = fmt.Errorf("gormlock: a statement about tables has committed this transaction, and another one could not be begun: %w", err)
		_ = c.tx.rollback()
		return
	}
	c.tx.tx = tx
}

// hasEnded reports whether the transaction ended with this error, by a rollback or otherwise. If the error does not show it, hasEnded
// asks the server.
func (c *loan) hasEnded(err error) bool {
	if sqlstate.EndsTransaction(err) {
		return true
	}
	if !sqlstate.MayEndTransaction(err) {
		return false
	}
	over, known := c.ask(whetherOpen)
	if !known && sqlstate.IsLockWaitTimeout(err) { // MySQL does not understand the first question
		over, _ = c.ask("SELECT IF(@@innodb_rollback_on_timeout,'over','open')")
	}
	return over
}

// ask asks the server whether the transaction is over. If the question itself fails, known is false.
func (c *loan) ask(question string) (over, known bool) {
	queryer, ok := c.driver.(driver.QueryerContext)
	if !ok {
		return false, false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.opening.ctx), time.Second)
	defer cancel()
	rows, err := queryer.QueryContext(ctx, question, nil)
	if err != nil {
		return false, false
	}
	defer func() { _ = rows.Close() }()
	said := make([]driver.Value, 1)
	if rows.Next(said) != nil {
		return false, false
	}
	text, _ := said[0].([]byte)
	return string(text) == "over" || said[0] == "over", true
}
