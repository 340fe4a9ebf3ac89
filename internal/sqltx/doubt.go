package sqltx

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/gormlock/gormlock/internal/sqlstate"
)

// doubt remembers what an error says of the connection: that the driver has given it up, or that the server has rolled the
// transaction back. What is executed afterwards would be committed by itself, statement for statement: it is refused.
func (c *lent) doubt(err error) {
	if errors.Is(err, driver.ErrBadConn) {
		c.clean = false
	}
	if err == nil || c.tx == nil || c.tx.over || !c.hasEnded(err) {
		return
	}
	c.expired = fmt.Errorf("gormlock: the server has rolled this transaction back, nothing more is executed in it: %w", err)
	_ = c.tx.rollback()
}

// hasEnded reports whether the server has rolled the transaction back with this error. With some it does so only as it is
// configured, and is asked.
func (c *lent) hasEnded(err error) bool {
	return sqlstate.EndsTransaction(err) || sqlstate.MayEndTransaction(err) && c.isOutside()
}

// isOutside asks MariaDB whether no transaction is open. MySQL does not know the question: its answer is an error.
func (c *lent) isOutside() bool {
	queryer, ok := c.driver.(driver.QueryerContext)
	if !ok {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.plan.ctx), time.Second)
	defer cancel()
	rows, err := queryer.QueryContext(ctx, "SELECT IF(@@in_transaction,'open','over')", nil)
	if err != nil {
		return false
	}
	defer func() { _ = rows.Close() }()
	said := make([]driver.Value, 1)
	if rows.Next(said) != nil {
		return false
	}
	text, _ := said[0].([]byte)
	return string(text) == "over" || said[0] == "over"
}
