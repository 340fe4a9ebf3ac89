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
	lender   *sql.DB     // makes each *sql.Tx; nil if nothing has needed it for a moment, because it costs a goroutine
	users    int         // transactions that need the lender
	prepared bool        // statements were prepared on the lender; they live as long as the application keeps them
	used     int         // how often a transaction took the lender
	idle     *time.Timer // closes a lender that nothing needs; nil if none is set

	abandoned map[*lentTx]*time.Timer // transactions that ctx has ended and the program has not; the timer ends them
}

// linger is how long the lender lives after its last transaction. So a program that begins one transaction after another
// makes only one lender.
const linger = 50 * time.Millisecond

// mostIdle is how many idle connections the lender keeps. They have borrowed nothing.
const mostIdle = 256

// New is a pool over db. The application must close db.
func New(db *sql.DB) *Pool {
	return &Pool{db: db, patience: patience}
}

// NewOther is New for a database that is not PostgreSQL. Its drivers have no simple protocol, and mean driver.ErrBadConn as they say it.
func NewOther(db *sql.DB) *Pool {
	p := New(db)
	p.speech.known.Store(otherwise)
	return p
}

// Opening is what a transaction begins with. It is for one call of Begin, and belongs to its transaction from then on.
type Opening struct {
	Options sql.TxOptions
	Texts   Texts // nil: the driver begins
	Watcher Watcher
	// Implicit says that the server commits the transaction before it executes a statement about tables.
	Implicit bool

	ctx  context.Context
	loan loan // the connection that is borrowed for it
}

// ended is the error of the opening's ctx, with the cause by which it ended. It is nil while ctx goes on.
func (o *Opening) ended() error { return cause.Add(o.ctx, o.ctx.Err()) }

// because is err. If ctx has ended, the error says so too, because a driver may then return any error.
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
	// Around is what is sent before and after the BEGIN, all in one message without arguments. before is empty or ends in a semicolon and
	// a space.
	Around() (before, after string)
	// Prepared is a prepared statement that may be executed after the BEGIN instead: its unique name,
	// the text that prepares it, and the text that executes it. All are empty if there is none.
	Prepared() (name, definition, execute string)
	// Answers reports whether Opened reads the result.
	Answers() bool
	// Opened reads the answer to the message. An error ends the transaction.
	Opened(ctx context.Context, result sql.Result, err error) error
	// Clean reports whether a rollback makes the connection fit for others after an error of Opened.
	Clean(err error) bool
}

// Watcher hears what happens to a transaction. Its methods are called on the goroutine that executes, commits or rolls back, except
// for Stray, Abandoned and Forgotten.
type Watcher interface {
	// Executed is called after each text that may have written rows, has a transaction command, or failed.
	Executed(text sqltext.Text, answer Answer)
	// Stored is called when the rows of a text are closed, if the text has stored something or may have.
	Stored()
	// Commit is called before the commit. If it returns an error, the transaction is rolled back and the commit returns that error. If a
	// text would commit, the text is not executed.
	Commit() error
	// Ended is called once. committed is also false if the outcome of the commit is not known.
	Ended(committed bool)
	// InDoubt is called before Ended if the server may have committed and its answer did not come.
	InDoubt()
	// Refused is called when nothing more is executed, because ctx or the server has ended the transaction. It may be called often.
	Refused()
	// Stray is called before the server can let others have the rows: what was written since the last savepoint, or everything (all), cannot
	// be committed any more. It may be called from any goroutine. Refused, Executed or Ended follows when the program uses the transaction again.
	Stray(all bool)
	// Abandoned is called from any goroutine when the end of ctx has rolled the transaction back.
	Abandoned()
	// Forgotten is called from any goroutine if the program has not ended such a transaction in time. Ended is not called then.
	Forgotten()
}

// Begin opens a transaction. It is rolled back when ctx ends before it is committed.
func (p *Pool) Begin(ctx context.Context, opening *Opening) (*sql.Tx, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	lender := p.lend()
	opening.ctx = ctx
	// openingContext does not end: at the end of ctx, database/sql would end the transaction unnoticed. lentTx handles that end.
	tx, err := lender.BeginTx(openingContext{opening}, &opening.Options)
	if err != nil {
		p.giveBack()
		if errors.Is(err, driver.ErrBadConn) && ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, opening.because(err) // with the error of ctx, if it has ended: opening a connection may fail with another one
	}
	opening.loan.isMade(tx)
	return tx, nil
}

// PrepareContext prepares a statement that runs outside of transactions and inside of those that Begin opened. Nothing is
// sent to the server until it is executed.
func (p *Pool) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return p.keepLender().PrepareContext(ctx, query)
}

// Close ends the goroutines that the pool keeps for prepared statements and for the next transaction, and the transactions whose ctx has ended.
// The prepared statements cannot be used any more. Other transactions go on, and new ones can begin.
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

// openingContext passes an Opening to the driver. It does not end with the Opening's ctx.
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

// closeIdle closes the lender if nothing has used it since the last check, and otherwise checks again later.
func (p *Pool) closeIdle(used int) {
	p.mu.Lock()
	p.idle = nil
	var lender *sql.DB
	switch {
	case p.users > 0 || p.prepared: // giveBack of the last user sets the timer again
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
