package sqltx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// ErrUnheard is the error of a statement that the server may have executed: the connection was lost before the answer came. The error of the
// driver would say that the statement was not sent.
//
// By driver.ErrBadConn a driver says so, and database/sql sends the statement again, unless it is in a transaction or on a *sql.Conn. pgx says so
//   - in each mode where the connection was closed before, ctx had ended before, or nothing of the statement could be written: nothing was sent.
//     A connection that database/sql has just given out is not closed.
//   - in the simple protocol, besides, where the connection is lost while pgx waits for the answer. Its MultiResultReader drops that error, and
//     then finds the connection closed, which counts as "before".
//   - perhaps, where a wrapper hides pgx: its mode is not known.
//   - nowhere else: not where a text is prepared or described, and not after the first message of the answer.
//
// An Exec without arguments is sent in the simple protocol in each mode. gormlock's own statements outside of transactions have some, or may be
// executed twice.
var ErrUnheard = fmt.Errorf("gormlock: whether this statement was executed is not known, read its rows before you run it again: %w", io.ErrUnexpectedEOF)

// Speech is how the driver of one pool sends statements. The first connection that is asked shows it.
type Speech struct{ known atomic.Uint32 }

const (
	simply uint32 = iota + 1
	otherwise
)

// IsSimple reports whether it speaks the simple protocol, or may do so.
func (s *Speech) IsSimple(conn *sql.Conn) bool {
	if s.known.Load() == 0 {
		_ = conn.Raw(func(driver any) error {
			s.of(driver)
			return nil
		})
	}
	return s.known.Load() != otherwise
}

// of reports whether a driver's connection may speak the simple protocol.
func (s *Speech) of(driver any) bool {
	if s.known.Load() == 0 {
		known := otherwise
		if maySpeakSimply(driver) {
			known = simply
		}
		s.known.Store(known)
	}
	return s.known.Load() == simply
}

// SendsTwice reports whether database/sql might send a statement twice outside of a transaction. The methods below do not.
func (p *Pool) SendsTwice(ctx context.Context) (bool, error) {
	if known := p.speech.known.Load(); known != 0 {
		return known == simply, nil
	}
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return true, err
	}
	defer func() { _ = conn.Close() }()
	return p.speech.IsSimple(conn), nil
}

// ExecContext sends a statement outside of a transaction, once.
func (p *Pool) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	twice, err := p.SendsTwice(ctx)
	switch {
	case err != nil:
		return nil, err
	case !twice:
		return p.db.ExecContext(ctx, query, args...)
	}
	defer p.giveBack()
	return p.lend().ExecContext(ctx, query, args...)
}

// QueryContext sends a query outside of a transaction, once.
func (p *Pool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	twice, err := p.SendsTwice(ctx)
	switch {
	case err != nil:
		return nil, err
	case !twice:
		return p.db.QueryContext(ctx, query, args...) //nolint:sqlclosecheck // the caller closes them
	}
	defer p.giveBack()                                // rows that are open need no lender
	return p.lend().QueryContext(ctx, query, args...) //nolint:sqlclosecheck // the caller closes them
}

// QueryRowContext sends a query for one row outside of a transaction, once.
func (p *Pool) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	twice, err := p.SendsTwice(ctx)
	switch {
	case err != nil:
		return FailedRow(err)
	case !twice:
		return p.db.QueryRowContext(ctx, query, args...)
	}
	defer p.giveBack()
	return p.lend().QueryRowContext(ctx, query, args...)
}

// unheard is err, told as ErrUnheard outside of a transaction where the driver would have the statement sent again.
func (c *loan) unheard(err error) error {
	if c.opening == nil && errors.Is(err, driver.ErrBadConn) && c.pool.speech.of(c.driver) {
		return ErrUnheard
	}
	return err
}
