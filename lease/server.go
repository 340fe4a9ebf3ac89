package lease

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/gormlock/gormlock/internal/holder"
	"github.com/gormlock/gormlock/internal/sqlstate"
)

// server runs statements on whichever connection of a pool is free.
type server struct {
	db    *sql.DB
	clock holder.Clock
}

// query runs a statement and scans its rows. sent is a time at which the server could not have seen the statement yet. It
// is zero if nothing was sent, and does not include the wait for a connection of the pool.
func (s *server) query(ctx context.Context, text string, args []any, scan func(rows *sql.Rows) error) (sent holder.Instant, err error) {
	for range maxStale {
		sent, err = s.queryOnce(ctx, text, args, scan)
		if !errors.Is(err, driver.ErrBadConn) && !sqlstate.Is(err, sqlstate.IdleSessionTimeout) { // either: the server has not seen the statement
			return sent, err
		}
	}
	return sent, err
}

// maxStale is how many connections of the pool may turn out to be closed, one after the other.
const maxStale = 10

func (s *server) queryOnce(ctx context.Context, text string, args []any, scan func(rows *sql.Rows) error) (sent holder.Instant, err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return holder.Instant{}, err
	}
	defer func() { _ = conn.Close() }()
	sent = s.clock()
	rows, err := conn.QueryContext(ctx, text, args...)
	if err != nil {
		return sent, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return sent, err
		}
	}
	return sent, rows.Err()
}
