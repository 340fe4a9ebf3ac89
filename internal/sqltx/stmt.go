package sqltx

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/gormlock/gormlock/internal/sqlstate"
)

// stmt is a prepared statement that is unknown to the server. It is executed as a text with arguments.
type stmt struct {
	conn  *lent
	query string
}

func (s *stmt) Close() error  { return nil }
func (s *stmt) NumInput() int { return -1 }

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	result, err := asText(ctx, s, s.conn.ExecContext, args)
	if !errors.Is(err, driver.ErrSkip) {
		return result, err
	}
	prepared, heard, err := s.enterPrepared(ctx)
	if err != nil {
		return nil, err
	}
	defer s.conn.mu.Unlock()
	defer func() { _ = prepared.Close() }()
	if execer, ok := prepared.(driver.StmtExecContext); ok {
		result, err = execer.ExecContext(ctx, args)
	} else {
		result, err = prepared.Exec(values(args)) //nolint:staticcheck // an old driver has no other way
	}
	s.conn.doubt(err)
	s.conn.tellExecuted(&heard, result, err)
	return result, err
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := asText(ctx, s, s.conn.QueryContext, args)
	if !errors.Is(err, driver.ErrSkip) {
		return rows, err
	}
	prepared, heard, err := s.enterPrepared(ctx)
	if err != nil {
		return nil, err
	}
	defer s.conn.mu.Unlock()
	if queryer, ok := prepared.(driver.StmtQueryContext); ok {
		rows, err = queryer.QueryContext(ctx, args)
	} else {
		rows, err = prepared.Query(values(args)) //nolint:staticcheck // an old driver has no other way
	}
	if err != nil {
		_ = prepared.Close()
		return s.conn.opened(ctx, nil, heard, err)
	}
	return s.conn.opened(ctx, &preparedRows{Rows: rows, prepared: prepared}, heard, nil)
}

// asText runs the statement as a text with arguments. A driver may refuse that: driver.ErrSkip.
func asText[T any](ctx context.Context, s *stmt, run func(context.Context, string, []driver.NamedValue) (T, error), args []driver.NamedValue) (T, error) {
	result, err := run(ctx, s.query, args)
	if s.isOutdated(err) {
		return run(ctx, s.query, args)
	}
	return result, err
}

// enterPrepared prepares the statement for a driver that does not execute texts with arguments. It leaves the connection
// locked, except after an error.
func (s *stmt) enterPrepared(ctx context.Context) (driver.Stmt, heard, error) {
	if err := s.conn.enter(); err != nil {
		return nil, heard{}, err
	}
	text, err := s.conn.listen(s.query, nil)
	if err == nil {
		var prepared driver.Stmt
		if prepared, err = s.prepare(ctx); err == nil {
			return prepared, text, nil
		}
	}
	s.conn.mu.Unlock()
	return nil, heard{}, err
}

// isOutdated reports whether the server refused a statement (0A000) because a table was altered after the driver had prepared
// it. The driver then forgets the statement, so running it again works. In a transaction that does not help, because the
// transaction has failed too.
func (s *stmt) isOutdated(err error) bool {
	return s.conn.opening == nil && sqlstate.Is(err, sqlstate.FeatureNotSupported)
}

// Exec and Query are never called: database/sql prefers the forms with a context.
func (s *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }
func (s *stmt) Query([]driver.Value) (driver.Rows, error)  { return nil, driver.ErrSkip }

func (s *stmt) prepare(ctx context.Context) (driver.Stmt, error) {
	var prepared driver.Stmt
	var err error
	if preparer, ok := s.conn.driver.(driver.ConnPrepareContext); ok {
		prepared, err = preparer.PrepareContext(ctx, s.query)
	} else {
		prepared, err = s.conn.driver.Prepare(s.query)
	}
	s.conn.doubt(err)
	return prepared, err
}

// preparedRows closes the statement when its result is closed.
type preparedRows struct {
	driver.Rows
	prepared driver.Stmt
}

func (r *preparedRows) Close() error {
	return errors.Join(r.Rows.Close(), r.prepared.Close())
}

func values(args []driver.NamedValue) []driver.Value {
	plain := make([]driver.Value, len(args))
	for i, a := range args {
		plain[i] = a.Value
	}
	return plain
}
