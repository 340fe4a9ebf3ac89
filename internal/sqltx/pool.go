package sqltx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gormlock/gormlock/internal/cause"
	"github.com/gormlock/gormlock/internal/sqltext"
)

// Pool begins transactions on connections borrowed from a *sql.DB.
type Pool struct {
	db       *sql.DB
	patience time.Duration
	speech   Speech

	wires     sync.Map // driver.Conn → found
	wireCount atomic.Int32

	mu       sync.Mutex
	lender   *sql.DB     // makes each *sql.Tx; nil if nothing has needed it for a moment, because it has a goroutine
	users    int         // transactions that need the lender
	prepared bool        // statements were prepared on the lender; they live as long as the application keeps them
	used     int         // how often a transaction took the lender
	idle     *time.Timer // closes a lender that nothing needs; nil without one

	abandoned map[*lentTx]*time.Timer // by their ctx: each waits for the program to end it, and ends it then
}

// linger is how long the lender lives after its last transaction: a program that begins one transaction after the other
// makes only one lender.
const linger = 50 * time.Millisecond

// mostIdle is how many connections of the lender wait for their next use, with nothing borrowed.
const mostIdle = 256

// New is a pool over db, which stays the application's to close.
func New(db *sql.DB) *Pool {
	return &Pool{db: db, patience: patience}
}

// Opening is what a transaction begins with. It is for one call of Begin, and belongs to its transaction from then on.
type Opening struct {
	Options sql.TxOptions
	Texts   Texts // nil: the driver begins
	Watcher Watcher
	// Implicit says that the server commits the transaction before it executes a statement about tables.
	Implicit bool

	ctx  context.Context
	loan loan // what is borrowed for it
}

// ended is the error of the opening's ctx, with the cause by which it ended. It is nil while ctx goes on.
func (o *Opening) ended() error { return cause.Add(o.ctx, o.ctx.Err()) }

// because is err, and that ctx has ended if it has: a driver may answer anything then.
func (o *Opening) because(err error) error {
	ended := o.ctx.Err()
	if err == nil || ended == nil {
		return err
	}
	if !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	return cause.Add(o.ctx, err)
}

// Texts travel with a BEGIN.
type Texts interface {
	// Around is what is sent before the BEGIN, a statement that ends in a semicolon and a space or nothing, and after it. All
	// of it is one message without arguments.
	Around() (before, after string)
	// Prepared is a statement that may be executed after the BEGIN in their place: its name, which no other statement has,
	// the text that prepares it, and the one that executes it. All are empty if there is none.
	Prepared() (name, definition, execute string)
	// Answers reports whether Opened reads the result.
	Answers() bool
	// Opened says what the answer to the message means; an error ends the transaction.
	Opened(ctx context.Context, result sql.Result, err error) error
	// Clean reports whether a rollback makes the connection fit for others after an error of Opened.
	Clean(err error) bool
}

// Watcher is called with what happens to a transaction, on the goroutine that executes, commits or rolls back, except
// for Stray, Abandoned and Forgotten.
type Watcher interface {
	// Executed hears of each text that may have written rows, or that has a transaction command, or that failed.
	Executed(text sqltext.Text, answer Answer)
	// Stored is called when the rows of a text are closed that has stored something, or may have.
	Stored()
	// Commit is asked before the commit. An error makes it a rollback and is what the commit returns. A text that would
	// commit is not executed then.
	Commit() error
	// Ended is called once. Committed is false too when the outcome of the commit is not known.
	Ended(committed bool)
	// InDoubt is called before that where the server may have committed, and its answer did not come.
	InDoubt()
	// Refused is called where nothing more is executed, because ctx or the server has ended the transaction. It may be called often.
	Refused()
	// Stray is called from any goroutine before the server can let others have the rows: nothing that was written since the last savepoint,
	// or nothing at all, can be committed any more. Refused, Executed or Ended follows when the program uses the transaction again.
	Stray(all bool)
	// Abandoned is called from any goroutine when the end of ctx has rolled the transaction back.
	Abandoned()
	// Forgotten is called from any goroutine where the program has not ended such a transaction in time. Ended is not called then.
	Forgotten()
}

// Begin opens a transaction. It is rolled back when ctx ends before it is committed.
func (p *Pool) Begin(ctx context.Context, opening *Opening) (*sql.Tx, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	lender := p.lend()
	opening.ctx = ctx
	// When its ctx ends, database/sql would end the transaction without the caller noticing. Here lent handles that.
	tx, err := lender.BeginTx(openingContext{opening}, &opening.Options)
	if err != nil {
		p.giveBack()
		if errors.Is(err, driver.ErrBadConn) && ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, opening.because(err) // a connection that is made meanwhile fails in its own words
	}
	opening.loan.isMade(tx)
	return tx, nil
}

// PrepareContext prepares a statement that runs outside of transactions and inside of those that Begin opened. The
// server hears of it when it is executed.
func (p *Pool) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return p.keepLender().PrepareContext(ctx, query)
}

// Close ends what the pool keeps for prepared statements and for the next transaction, and transactions that their ctx has ended. Those
// statements cannot be used any more. Other transactions go on, and new ones can begin.
func (p *Pool) Close() error {
	p.mu.Lock()
	abandoned := slices.Collect(maps.Keys(p.abandoned))
	p.mu.Unlock()
	for _, t := range abandoned {
		t.endForgotten()
	}
	p.mu.Lock()
	kept := p.users == 0
	p.prepared = false
	var lender *sql.DB
	if kept {
		lender, p.lender = p.lender, nil
	}
	p.mu.Unlock()
	p.forgetWires()
	if lender == nil {
		return nil
	}
	return lender.Close()
}

type openingKey struct{}

// openingContext hands an Opening to the driver, and does not end with its ctx.
type openingContext struct{ *Opening }

func (openingContext) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
func (openingContext) Done() <-chan struct{}                   { return nil }
func (openingContext) Err() error                              { return nil }

func (c openingContext) Value(key any) any {
	if key == (openingKey{}) {
		return c.Opening
	}
	return c.ctx.Value(key)
}

func (p *Pool) lend() *sql.DB {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users++
	p.used++
	return p.opened()
}

// keepLender returns the lender, and keeps it as long as the pool.
func (p *Pool) keepLender() *sql.DB {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prepared = true
	return p.opened()
}

func (p *Pool) opened() *sql.DB {
	if p.lender == nil {
		p.lender = sql.OpenDB(connector{p})
		p.lender.SetMaxIdleConns(mostIdle)
	}
	return p.lender
}

func (p *Pool) giveBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users--
	if p.users == 0 && !p.prepared && p.idle == nil {
		used := p.used
		p.idle = time.AfterFunc(linger, func() { p.closeIdle(used) })
	}
}

// closeIdle closes the lender if nothing has used it since the last look, and otherwise looks again later.
func (p *Pool) closeIdle(used int) {
	p.mu.Lock()
	p.idle = nil
	var lender *sql.DB
	switch {
	case p.users > 0 || p.prepared: // its last user looks again
	case p.used != used:
		now := p.used
		p.idle = time.AfterFunc(linger, func() { p.closeIdle(now) })
	default:
		lender, p.lender = p.lender, nil
	}
	p.mu.Unlock()
	if lender != nil {
		p.forgetWires()
		_ = lender.Close()
	}
}

// connector gives the lender its connections.
type connector struct{ pool *Pool }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	borrowed, err := c.pool.borrow(ctx)
	if err != nil {
		return nil, err
	}
	return &lent{c.pool, borrowed}, nil
}

func (c connector) Driver() driver.Driver { return c.pool.db.Driver() }
