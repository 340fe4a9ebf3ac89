package sqltx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
)

// Pool begins transactions on connections borrowed from a *sql.DB.
type Pool struct {
	db *sql.DB

	mu       sync.Mutex
	lender   *sql.DB // makes the *sql.Tx; nil while nothing needs it, so that no goroutine of it outlives its use
	users    int     // transactions that need the lender
	prepared bool    // statements were prepared on the lender and live as long as the application keeps them
}

// New is a pool over db, which stays the application's to close.
func New(db *sql.DB) *Pool {
	return &Pool{db: db}
}

// Opening is what a transaction begins with.
type Opening struct {
	Options sql.TxOptions
	// Before and After are sent around the BEGIN, all as one message without arguments. Both empty: the driver begins.
	Before, After string
	// Opened says what the answer to that message means; an error ends the transaction. Only called if there is text.
	Opened func(ctx context.Context, result sql.Result, err error) error
	// Clean says whether a rollback makes the connection fit for others after an error of Opened.
	Clean   func(err error) bool
	Watcher Watcher
}

// Watcher is told what becomes of a transaction, always on the goroutine that executes, commits or rolls back.
type Watcher interface {
	Savepoint(name string)
	RollbackTo(name string)
	Release(name string)
	// Commit is asked before the commit. An error makes it a rollback and is what the commit returns.
	Commit() error
	// Ended is called once. Committed is false too when the outcome of the commit is unknown.
	Ended(committed bool)
}

// Begin opens a transaction. It is rolled back when ctx ends before it is committed.
func (p *Pool) Begin(ctx context.Context, opening Opening) (*sql.Tx, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	lender := p.lend()
	plan := &plan{Opening: opening, ctx: ctx}
	// database/sql would end the transaction behind the caller's back when its ctx ends: here lent does that.
	tx, err := lender.BeginTx(context.WithValue(context.WithoutCancel(ctx), planKey{}, plan), &opening.Options)
	if err != nil {
		p.giveBack()
		if errors.Is(err, driver.ErrBadConn) && ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	return tx, nil
}

// PrepareContext prepares a statement that runs outside of transactions and inside of those that Begin opened. The
// server hears of it when it is executed.
func (p *Pool) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return p.keepLender().PrepareContext(ctx, query)
}

// Close ends what the pool keeps for prepared statements, which cannot be used any more. Transactions go on, and new ones
// can begin.
func (p *Pool) Close() error {
	p.mu.Lock()
	kept := p.prepared && p.users == 0
	p.prepared = false
	var lender *sql.DB
	if kept {
		lender, p.lender = p.lender, nil
	}
	p.mu.Unlock()
	if lender == nil {
		return nil
	}
	return lender.Close()
}

// plan is one call of Begin on its way through database/sql to the driver.
type plan struct {
	Opening
	ctx context.Context
}

type planKey struct{}

func (p *Pool) lend() *sql.DB {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users++
	return p.opened()
}

// keepLender is the lender, from now on kept as long as the pool.
func (p *Pool) keepLender() *sql.DB {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prepared = true
	return p.opened()
}

func (p *Pool) opened() *sql.DB {
	if p.lender == nil {
		p.lender = sql.OpenDB(connector{p})
		p.lender.SetMaxIdleConns(-1)
	}
	return p.lender
}

func (p *Pool) giveBack() {
	p.mu.Lock()
	p.users--
	var idle *sql.DB
	if p.users == 0 && !p.prepared {
		idle, p.lender = p.lender, nil
	}
	p.mu.Unlock()
	if idle != nil {
		_ = idle.Close()
	}
}

// connector gives the lender its connections: each is borrowed for one transaction, or one statement.
type connector struct{ pool *Pool }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	plan, _ := ctx.Value(planKey{}).(*plan)
	if plan != nil {
		ctx = plan.ctx
	}
	conn, err := c.pool.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	l := &lent{pool: c.pool, conn: conn, plan: plan, clean: true}
	if err := conn.Raw(func(driverConn any) error {
		var ok bool
		if l.driver, ok = driverConn.(driver.Conn); !ok {
			return errors.New("gormlock: the driver's connection is not a driver.Conn")
		}
		return nil
	}); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return l, nil
}

func (c connector) Driver() driver.Driver { return c.pool.db.Driver() }
