package lease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/sqlstate"
	"github.com/gormlock/gormlock/internal/sqltx"
)

// server runs statements on whichever connection of a pool is free.
type server struct {
	db     *sql.DB
	clock  holder.Clock
	speech sqltx.Speech
}

// query runs a statement and scans its rows. sent is a time at which the server could not have seen the statement yet. It
// is zero if nothing was sent, and does not include the wait for a connection of the pool.
func (s *server) query(ctx context.Context, text string, args []any, scan func(rows *sql.Rows) error) (sent holder.Instant, err error) {
	return s.send(ctx, func(conn *sql.Conn) error {
		rows, err := conn.QueryContext(ctx, text, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// exec runs a statement that returns no rows, and returns how many it changed.
func (s *server) exec(ctx context.Context, text string, args []any) (changed int64, err error) {
	_, err = s.send(ctx, func(conn *sql.Conn) error {
		result, err := conn.ExecContext(ctx, text, args...)
		if err == nil {
			changed, err = result.RowsAffected()
		}
		return err
	})
	return changed, err
}

// maxStale is how many connections of the pool may turn out to be closed, one after the other.
const maxStale = 10

// send runs a statement again on another connection where the server has not seen it.
func (s *server) send(ctx context.Context, run func(conn *sql.Conn) error) (sent holder.Instant, err error) {
	for range maxStale {
		sent, err = s.sendOnce(ctx, run)
		if !errors.Is(err, driver.ErrBadConn) && !sqlstate.Is(err, sqlstate.IdleSessionTimeout) { // either: the server has not seen it
			return sent, err
		}
	}
	return sent, err
}

func (s *server) sendOnce(ctx context.Context, run func(conn *sql.Conn) error) (sent holder.Instant, err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return holder.Instant{}, err
	}
	defer func() { _ = conn.Close() }()
	simple := s.speech.IsSimple(conn)
	sent = s.clock()
	if err = run(conn); simple && errors.Is(err, driver.ErrBadConn) { // see sqltx.ErrUnheard
		err = io.ErrUnexpectedEOF // as in other modes
	}
	return sent, err
}
