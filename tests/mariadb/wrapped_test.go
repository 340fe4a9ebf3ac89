package mariadb_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
)

// hidden is a connector whose driver, connections and errors are of types that say nothing, as those of a wrapper that
// traces statements are.
type hidden struct {
	driver.Connector
	says bool // what comes back is wrapped too
}

type (
	hiddenDriver struct{ driver.Driver }
	hiddenConn   struct {
		driver.Conn
		says bool
	}
)

func (h hidden) Driver() driver.Driver { return hiddenDriver{h.Connector.Driver()} }

func (h hidden) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := h.Connector.Connect(ctx)
	if err != nil {
		return nil, wrapped(err, h.says)
	}
	return hiddenConn{conn, h.says}, nil
}

func wrapped(err error, says bool) error {
	if err == nil || !says || errors.Is(err, driver.ErrSkip) || errors.Is(err, driver.ErrBadConn) {
		return err
	}
	return errors.Join(errors.New("traced"), fmt.Errorf("statement 7: %w", err))
}

func (c hiddenConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	return result, wrapped(err, c.says)
}

func (c hiddenConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	return rows, wrapped(err, c.says)
}

func (c hiddenConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	return stmt, wrapped(err, c.says)
}

func (c hiddenConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	return tx, wrapped(err, c.says)
}
