package sqltx

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"reflect"
)

// lentRows is an open result. While it is open, the end of the transaction's ctx does not give the connection back.
type lentRows struct {
	driver.Rows
	conn  *loan
	ctx   context.Context // of the query
	heard heard
	err   error // why the rows ended early
	seen  int   // how many rows came
	ended bool  // there are no more
}

func (r *lentRows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	switch {
	case err == nil:
		r.seen++
	case errors.Is(err, io.EOF):
		r.ended = true
	default:
		r.err = err
	}
	return err
}

// stored reports whether the text has stored something, or may have. An INSERT, UPDATE or DELETE with RETURNING has if it returned a row.
func (r *lentRows) stored() bool {
	text := r.heard.text
	if !text.Writes || text.Single && r.err != nil {
		return false
	}
	return !text.Counted || r.seen > 0 || !r.ended || len(r.Columns()) == 0
}

func (r *lentRows) Close() error {
	stored := r.stored()
	err := r.Rows.Close()
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows--
	failed := cmp.Or(r.err, err)
	c.doubt(failed)
	if r.heard.told && failed != nil && c.opening != nil && c.opening.Watcher != nil {
		r.heard = heard{} // the watcher has heard what the text does, and must now hear that it failed
	}
	switch {
	case r.heard.told:
	case r.ctx.Err() != nil: // database/sql may close the rows from another goroutine
		c.tellLater(r.heard, cmp.Or(failed, r.ctx.Err()))
	default:
		c.tellWith(&r.heard, stored, failed)
	}
	if stored {
		c.opening.Watcher.Stored()
	}
	if c.rows == 0 && c.tx != nil && c.tx.late {
		c.tx.abandon()
	}
	return err
}

// The methods below pass the call on to the driver's result, if it has such a method.

func (r *lentRows) HasNextResultSet() bool {
	more, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && more.HasNextResultSet()
}

func (r *lentRows) NextResultSet() error {
	if more, ok := r.Rows.(driver.RowsNextResultSet); ok {
		return more.NextResultSet()
	}
	return io.EOF
}

func (r *lentRows) ColumnTypeScanType(index int) reflect.Type {
	if typed, ok := r.Rows.(driver.RowsColumnTypeScanType); ok {
		return typed.ColumnTypeScanType(index)
	}
	return reflect.TypeFor[any]()
}

func (r *lentRows) ColumnTypeDatabaseTypeName(index int) string {
	if typed, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return typed.ColumnTypeDatabaseTypeName(index)
	}
	return ""
}

func (r *lentRows) ColumnTypeLength(index int) (int64, bool) {
	if typed, ok := r.Rows.(driver.RowsColumnTypeLength); ok {
		return typed.ColumnTypeLength(index)
	}
	return 0, false
}

func (r *lentRows) ColumnTypeNullable(index int) (nullable, ok bool) {
	if typed, ok := r.Rows.(driver.RowsColumnTypeNullable); ok {
		return typed.ColumnTypeNullable(index)
	}
	return false, false
}

func (r *lentRows) ColumnTypePrecisionScale(index int) (precision, scale int64, ok bool) {
	if typed, ok := r.Rows.(driver.RowsColumnTypePrecisionScale); ok {
		return typed.ColumnTypePrecisionScale(index)
	}
	return 0, 0, false
}
