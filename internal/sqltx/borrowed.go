package sqltx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/gormlock/gormlock/internal/sqlstate"
)

// borrowed is one of the application's connections. It is given back once: to the application's pool if it is clean. Otherwise
// it is closed.
type borrowed struct {
	pool   *Pool
	conn   *sql.Conn
	driver driver.Conn
	failed error // nothing could be borrowed

	clean    bool // the server confirmed that no transaction is open
	returned bool // conn is back in the application's pool, or closed

	asked bool // wire was looked for
	wire  wire // nil: the driver has none that is known
}

// take borrows the connection, and waits for a free one as long as ctx lasts.
func (b *borrowed) take(ctx context.Context) (err error) {
	if b.conn, err = b.pool.db.Conn(ctx); err != nil {
		return err
	}
	if err = b.conn.Raw(b.hold); err != nil {
		_ = b.conn.Close()
	}
	return err
}

func (b *borrowed) hold(driverConn any) (err error) {
	var ok bool
	if b.driver, ok = driverConn.(driver.Conn); !ok {
		err = errors.New("gormlock: the driver's connection is not a driver.Conn")
	}
	return err
}

func (b *borrowed) beginDriver(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if beginner, ok := b.driver.(driver.ConnBeginTx); ok {
		return beginner.BeginTx(ctx, opts)
	}
	if opts.Isolation != 0 || opts.ReadOnly {
		return nil, errors.New("gormlock: the driver cannot begin a transaction with an isolation level or read-only")
	}
	return b.driver.Begin() //nolint:staticcheck // an old driver has no other way to begin
}

// reusable reports whether the connection is outside of any transaction after a commit that failed with err.
func (b *borrowed) reusable(err error) bool {
	if sqlstate.TakesBack(err) {
		return true
	}
	resetter, ok := b.driver.(driver.SessionResetter)
	return ok && resetter.ResetSession(context.Background()) == nil
}

// wireOnce returns the wire. The first call looks for it.
func (b *borrowed) wireOnce() wire {
	if !b.asked {
		b.asked, b.wire = true, b.pool.wireOf(b.driver)
	}
	return b.wire
}

// status asks the driver, which knows the status without asking the server. It does not ask after the connection was given back, because then
// the connection belongs to others.
func (b *borrowed) status() Status {
	if b.returned {
		return Gone
	}
	wire := b.wireOnce()
	switch {
	case wire == nil:
		return Unknown
	case wire.IsClosed():
		return Gone
	}
	return Status(wire.TxStatus())
}

func (b *borrowed) CheckNamedValue(value *driver.NamedValue) error {
	switch conn := b.driver.(type) {
	case driver.NamedValueChecker:
		return conn.CheckNamedValue(value)
	case nil: // nothing could be borrowed
		return nil
	}
	return driver.ErrSkip
}

func (b *borrowed) giveBack() {
	if b.conn == nil || b.returned {
		return
	}
	b.returned = true
	if !b.clean {
		_ = b.conn.Raw(func(any) error { return driver.ErrBadConn }) // database/sql closes it
	}
	_ = b.conn.Close()
}
