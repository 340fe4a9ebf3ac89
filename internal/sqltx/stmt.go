package sqltx

import (
	"context"
	"database/sql/driver"
	"errors"
)

// stmt is a prepared statement that the server has not heard of. It is executed as a text with arguments.
type stmt struct {
	conn  *lent
	query string
}

func (s *stmt) Close() error  { return nil }
func (s *stmt) NumInput() int { return -1 }

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	result, err := s.conn.ExecContext(ctx, s.query, args)
	if s.isOutdated(err) {
		result, err = s.conn.ExecContext(ctx, s.query, args)
	}
	if !errors.Is(err, driver.ErrSkip) {
		return result, err
	}
	if err := s.conn.enter(); err != nil {
		return nil, err
	}
	defer s.conn.mu.Unlock()
	prepared, err := s.prepare(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = prepared.Close() }()
	if execer, ok := prepared.(driver.StmtExecContext); ok {
		result, err = execer.ExecContext(ctx, args)
	} else {
		result, err = prepared.Exec(values(args)) //nolint:staticcheck // such a driver has no other
	}
	s.conn.doubt(err)
	return result, err
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := s.conn.QueryContext(ctx, s.query, args)
	if s.isOutdated(err) {
		rows, err = s.conn.QueryContext(ctx, s.query, args)
	}
	if !errors.Is(err, driver.ErrSkip) {
		return rows, err
	}
	if err := s.conn.enter(); err != nil {
		return nil, err
	}
	defer s.conn.mu.Unlock()
	prepared, err := s.prepare(ctx)
	if err != nil {
		return nil, err
	}
	if queryer, ok := prepared.(driver.StmtQueryContext); ok {
		rows, err = queryer.QueryContext(ctx, args)
	} else {
		rows, err = prepared.Query(values(args)) //nolint:staticcheck // such a driver has no other
	}
	if err != nil {
		_ = prepared.Close()
		return s.conn.opened(nil, err)
	}
	return s.conn.opened(&preparedRows{Rows: rows, prepared: prepared}, nil)
}

// isOutdated reports whether the server refused what the driver had prepared before a table was altered (0A000), as it does
// once: the driver forgets it then. It is run again, but not in a transaction, which has failed with it.
func (s *stmt) isOutdated(err error) bool {
	var state interface{ SQLState() string }
	return s.conn.plan == nil && errors.As(err, &state) && state.SQLState() == "0A000"
}

// Exec and Query are never called: database/sql prefers the forms with a context.
func (s *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }
func (s *stmt) Query([]driver.Value) (driver.Rows, error)  { return nil, driver.ErrSkip }

// prepare is for drivers that execute no text with arguments.
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

// preparedRows closes the statement with its result.
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
