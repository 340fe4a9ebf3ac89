package sqltx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"
)

// rollbackTime bounds a rollback: past it the connection is closed, which rolls back as well.
const rollbackTime = 5 * time.Second

// lent is a driver's connection, lent to one transaction or one statement.
type lent struct {
	pool   *Pool
	conn   *sql.Conn
	driver driver.Conn
	plan   *plan // nil outside of a transaction begun by the pool

	mu       sync.Mutex // one call to the driver at a time: the end of ctx comes from its own goroutine
	tx       *lentTx    // the open transaction
	rows     int        // open results: while there are any the driver's connection is theirs
	expired  error      // ctx has ended; nothing is executed any more
	clean    bool       // the server confirmed that no transaction is open
	returned bool       // conn is back in the application's pool, or closed

	asked    bool       // whether reporter was looked for
	reporter reporter   // nil: the driver does not say how the transaction stands
	late     []lateText // what the watcher has not heard of yet
}

func (c *lent) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if c.plan == nil {
		return c.beginDriver(ctx, opts)
	}
	c.clean = false
	begin := c.beginByDriver
	if c.plan.After != "" {
		begin = c.beginByText
	}
	tx, err := begin(ctx, opts)
	if err != nil {
		if ended := c.plan.ctx.Err(); ended != nil && !errors.Is(err, ended) {
			err = fmt.Errorf("%w: %w", ended, err)
		}
		return nil, err
	}
	c.tx = tx
	c.tx.forget = afterEnd(c.plan.ctx, c.expire)
	return c.tx, nil
}

// afterEnd is [context.AfterFunc] that costs nothing where ctx cannot end.
func afterEnd(ctx context.Context, run func()) (stop func() bool) {
	if ctx.Done() == nil {
		return neverEnds
	}
	return context.AfterFunc(ctx, run)
}

func neverEnds() bool { return true }

func (c *lent) beginByDriver(ctx context.Context, opts driver.TxOptions) (*lentTx, error) {
	// What the driver remembers is a ctx that ends only when it is told to: a commit and a rollback need one that lives.
	running, interrupt := context.WithCancel(ctx)
	stop := afterEnd(c.plan.ctx, interrupt)
	tx, err := c.beginDriver(running, opts)
	// As in database/sql: what the driver refused to begin is no reason to close a connection.
	c.clean = err != nil && c.plan.ctx.Err() == nil && !errors.Is(err, driver.ErrBadConn)
	if !stop() && err == nil {
		err = c.plan.ctx.Err()
	}
	if err != nil {
		interrupt()
		return nil, err
	}
	return &lentTx{conn: c, tx: tx, interrupt: interrupt}, nil
}

// beginByText begins with the texts of the plan. Each text has a ctx of its own: where the plan's cannot end, a driver need not
// look after it.
func (c *lent) beginByText(_ context.Context, opts driver.TxOptions) (*lentTx, error) {
	begin, err := beginText(opts)
	if err != nil {
		c.clean = true
		return nil, err
	}
	ctx, tx := c.plan.ctx, textTx{c}
	result, err := c.exec(ctx, c.plan.Before+begin+"; "+c.plan.After, nil)
	if errors.Is(err, driver.ErrBadConn) {
		return nil, err
	}
	err = c.plan.Opened(ctx, result, err)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		c.clean = ctx.Err() == nil && tx.Rollback() == nil && c.plan.Clean(err)
		return nil, err
	}
	return &lentTx{conn: c, tx: tx, interrupt: func() {}}, nil
}

func (c *lent) beginDriver(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if beginner, ok := c.driver.(driver.ConnBeginTx); ok {
		return beginner.BeginTx(ctx, opts)
	}
	if opts.Isolation != 0 || opts.ReadOnly {
		return nil, errors.New("gormlock: the driver cannot begin a transaction with an isolation level or read-only")
	}
	return c.driver.Begin() //nolint:staticcheck // the only way to begin that such a driver has
}

// expire rolls back and gives the connection back when ctx has ended. The Watcher hears of it later, see lentTx.
func (c *lent) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tx == nil {
		return
	}
	c.expired = c.plan.ctx.Err()
	if c.rows == 0 {
		c.tx.abandon()
	}
}

// enter begins a call to the driver's connection, unless ctx has ended.
func (c *lent) enter() error {
	c.mu.Lock()
	if c.expired != nil {
		tx := c.tx
		c.mu.Unlock()
		if tx != nil { // nothing more is executed in it: memory need not wait for the rollback
			tx.tell(false)
		}
		return c.expired
	}
	c.catchUp()
	return nil
}

func (c *lent) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	heard, err := c.listen(query)
	if err != nil {
		return nil, err
	}
	result, err := c.exec(ctx, query, args)
	c.tell(&heard, err)
	return result, err
}

func (c *lent) exec(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	execer, ok := c.driver.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	result, err := execer.ExecContext(ctx, query, args)
	c.doubt(err)
	return result, err
}

func (c *lent) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	queryer, ok := c.driver.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	heard, err := c.listen(query)
	if err != nil {
		return nil, err
	}
	rows, err := queryer.QueryContext(ctx, query, args)
	return c.opened(ctx, rows, heard, err)
}

// opened counts a result as open until it is closed. A text of several statements may not be through before.
func (c *lent) opened(ctx context.Context, rows driver.Rows, heard heard, err error) (driver.Rows, error) {
	c.doubt(err)
	if err != nil || heard.text.Single {
		c.tell(&heard, err)
	}
	if err != nil {
		return nil, err
	}
	c.rows++
	return &lentRows{Rows: rows, conn: c, ctx: ctx, heard: heard}, nil
}

// PrepareContext does not speak to the server: the statement is executed through the connection when it is used, where
// drivers have a cache of their own.
func (c *lent) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	c.pool.keepLender()
	return &stmt{conn: c, query: query}, nil
}

func (c *lent) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func (c *lent) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c *lent) CheckNamedValue(value *driver.NamedValue) error {
	if checker, ok := c.driver.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(value)
	}
	return driver.ErrSkip
}

func (c *lent) Ping(ctx context.Context) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.mu.Unlock()
	if pinger, ok := c.driver.(driver.Pinger); ok {
		return pinger.Ping(ctx)
	}
	return nil
}

// Close gives the connection back. database/sql calls it once, when the transaction or the statement is done with it.
func (c *lent) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveBack()
	if c.tx != nil {
		c.pool.giveBack()
	}
	return nil
}

func (c *lent) giveBack() {
	if c.returned {
		return
	}
	c.returned = true
	if !c.clean {
		_ = c.conn.Raw(func(any) error { return driver.ErrBadConn }) // database/sql closes it
	}
	_ = c.conn.Close()
}
