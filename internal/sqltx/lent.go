package sqltx

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync"
	"time"

	"github.com/gormlock/gormlock/internal/sqltext"
)

// rollbackTime bounds a rollback. After it the connection is closed, which rolls back too.
const rollbackTime = 5 * time.Second

// lent is a connection of the lender. database/sql reuses it, and for each use it borrows one of the application's connections.
type lent struct {
	pool *Pool
	*loan
}

// loan is a borrowed connection, in use by one transaction or one statement.
type loan struct {
	borrowed
	opening *Opening // nil outside of a transaction begun by the pool

	mu      sync.Mutex // one call to the driver at a time: ctx ends on another goroutine
	tx      *lentTx    // the open transaction: own
	own     lentTx
	steps   steps // the ctx that the driver keeps for the transaction
	rows    int   // number of open results, which use the driver's connection
	expired error // ctx has ended; nothing is executed any more

	implicit sqltext.Implicit // of the text being executed
	late     []lateText       // texts that the watcher has not heard of yet
}

// borrow takes one of the application's connections, for the transaction of the Opening in ctx, or for a statement.
func (p *Pool) borrow(ctx context.Context) (*loan, error) {
	var l *loan
	if opening, _ := ctx.Value(openingKey{}).(*Opening); opening == nil {
		l = &loan{borrowed: borrowed{pool: p, clean: true}}
	} else {
		l, ctx = &opening.loan, opening.ctx
		*l = loan{borrowed: borrowed{pool: p, clean: true}, opening: opening} // set anew: database/sql may try again
	}
	if err := l.take(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// ResetSession borrows again: database/sql calls it before it reuses a connection. It ignores every error but driver.ErrBadConn, so
// the first use of the connection returns the others.
func (c *lent) ResetSession(ctx context.Context) error {
	again, err := c.pool.borrow(ctx)
	if errors.Is(err, driver.ErrBadConn) {
		return err
	}
	if err != nil {
		again = &loan{borrowed: borrowed{pool: c.pool, failed: err}}
	}
	c.loan = again
	return nil
}

// IsValid gives the borrowed connection back: database/sql calls it once, when the transaction or the statement no longer needs it.
func (c *lent) IsValid() bool {
	_ = c.Close()
	return true
}

// Close gives the borrowed connection back.
func (c *lent) Close() error {
	if c.loan != nil {
		c.end()
		c.loan = nil
	}
	return nil
}

func (c *loan) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if c.failed != nil {
		return nil, c.failed
	}
	if c.opening == nil {
		return c.beginDriver(ctx, opts)
	}
	c.clean = false
	var tx *lentTx
	var err error
	switch {
	case c.opening.Texts != nil:
		tx, err = c.beginByText(opts)
	case c.wireOnce() != nil:
		tx, err = c.beginBySteps(opts)
	default:
		tx, err = c.beginByDriver(ctx, opts)
	}
	if err != nil {
		return nil, c.opening.because(err)
	}
	c.mu.Lock()
	c.tx = tx
	c.mu.Unlock()
	if tx.forget = neverEnds; c.opening.ctx.Done() != nil {
		tx.forget = context.AfterFunc(c.opening.ctx, tx.expire)
	}
	return c.tx, nil
}

// afterEnd is [context.AfterFunc], without its cost for a ctx that cannot end.
func afterEnd(ctx context.Context, run func()) (stop func() bool) {
	if ctx.Done() == nil {
		return neverEnds
	}
	return context.AfterFunc(ctx, run)
}

func neverEnds() bool { return true }

func (c *loan) beginByDriver(ctx context.Context, opts driver.TxOptions) (*lentTx, error) {
	// The driver keeps this ctx. It must not end with the caller's, because a commit and a rollback need one that has not ended.
	running, interrupt := context.WithCancel(ctx)
	stop := afterEnd(c.opening.ctx, interrupt)
	tx, err := c.beginDriver(running, opts)
	// As in database/sql: if the driver only refuses to begin, the connection stays open.
	c.clean = err != nil && c.opening.ctx.Err() == nil && !errors.Is(err, driver.ErrBadConn)
	if !stop() && err == nil {
		err = c.opening.ctx.Err()
	}
	if err != nil {
		interrupt()
		return nil, err
	}
	return c.begun(tx, interrupt), nil
}

// beginByText begins with the texts of the opening. Each text is sent with the opening's ctx. If that cannot end, the driver need
// not watch it.
func (c *loan) beginByText(opts driver.TxOptions) (*lentTx, error) {
	begin, err := beginText(opts)
	if err != nil {
		c.clean = true
		return nil, err
	}
	ctx, tx := c.opening.ctx, textTx{c}
	result, err := c.open(ctx, begin)
	if errors.Is(err, driver.ErrBadConn) {
		return nil, err
	}
	err = c.opening.Texts.Opened(ctx, result, err)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		c.clean = ctx.Err() == nil && tx.Rollback() == nil && c.opening.Texts.Clean(err)
		return nil, err
	}
	return c.begun(tx, nil), nil
}

// begun is the transaction that the driver, or a text, has begun.
func (c *loan) begun(tx driver.Tx, interrupt context.CancelFunc) *lentTx {
	c.own.conn, c.own.tx, c.own.interrupt = c, tx, interrupt
	return &c.own
}

// expire rolls back and returns the connection when ctx has ended. The Watcher hears of the end later: see lentTx. But it must hear before the
// rollback that nothing can be committed any more, because the rollback lets others have the rows.
func (t *lentTx) expire() {
	c := t.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expired, t.late = c.opening.ended(), true
	if watcher := c.opening.Watcher; watcher != nil && !t.over {
		watcher.Stray(true)
	}
	if c.rows == 0 {
		t.abandon()
	}
}

// enter begins a call to the driver's connection, unless ctx has ended.
func (c *loan) enter() error {
	c.mu.Lock()
	if c.failed != nil {
		defer c.mu.Unlock()
		return c.failed
	}
	if expired := c.expired; expired != nil {
		c.mu.Unlock()
		c.opening.refuse()
		return expired
	}
	c.catchUp()
	return nil
}

func (c *loan) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	own := sqltext.OwnIn(ctx, query)
	heard, err := c.listen(query, own)
	if err != nil {
		return nil, err
	}
	var result driver.Result
	if own != nil {
		result, err = c.execOwn(ctx, own)
	} else {
		result, err = c.exec(ctx, query, args)
	}
	c.tellExecuted(&heard, result, err)
	return result, err
}

func (c *loan) exec(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	execer, ok := c.driver.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	result, err := execer.ExecContext(ctx, query, args)
	c.doubt(err)
	return result, c.unheard(err)
}

func (c *loan) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	queryer, ok := c.driver.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	heard, err := c.listen(query, nil)
	if err != nil {
		return nil, err
	}
	rows, err := queryer.QueryContext(ctx, query, args)
	return c.opened(ctx, rows, heard, err)
}

// opened counts a result as open until it is closed. A text of several statements may not be executed to the end before
// that.
func (c *loan) opened(ctx context.Context, rows driver.Rows, heard heard, err error) (driver.Rows, error) {
	c.doubt(err)
	if err != nil || heard.text.Single && heard.implicit == sqltext.Nothing {
		c.tell(&heard, err)
	}
	if err != nil {
		return nil, c.unheard(err)
	}
	c.rows++
	return &lentRows{Rows: rows, conn: c, ctx: ctx, heard: heard}, nil
}

// PrepareContext sends nothing to the server. When the statement is used, the connection executes it as a text: drivers have
// a cache of prepared statements of their own.
func (c *lent) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	c.pool.keepLender()
	return &stmt{conn: c, query: query}, nil
}

func (c *lent) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func (c *loan) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c *loan) Ping(ctx context.Context) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.mu.Unlock()
	if pinger, ok := c.driver.(driver.Pinger); ok {
		return pinger.Ping(ctx)
	}
	return nil
}

// end gives the connection back when database/sql is done with it.
func (c *loan) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveBack()
	if c.tx != nil {
		c.pool.giveBack()
	}
}
