package sqltx

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"reflect"
)

// Relay is rows that come from others: change sees each of them before it is scanned, and the error of end is that of their end, unless
// they have one. It is also that of Close if the caller ends them sooner. Who steps to the first row and asks for the columns then has
// decided what he reads it into: change sees that row when he asks, not before. database/sql makes no rows for others, so a database
// that has only these does.
func Relay(rows *sql.Rows, change func(row []driver.Value), end func() error) (*sql.Rows, error) {
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	only := sql.OpenDB(relay{rows: rows, names: names, types: types, change: change, end: end})
	defer func() { _ = only.Close() }()                // it lives as long as the rows
	return only.QueryContext(context.Background(), "") //nolint:sqlclosecheck // they are the caller's
}

// relay is the database, its connection and its rows.
type relay struct {
	rows   *sql.Rows
	names  []string
	types  []*sql.ColumnType
	change func(row []driver.Value)
	end    func() error
}

func (r relay) Connect(context.Context) (driver.Conn, error) { return r, nil }
func (r relay) Driver() driver.Driver                        { return nil }
func (r relay) Prepare(string) (driver.Stmt, error)          { return nil, driver.ErrSkip }
func (r relay) Begin() (driver.Tx, error)                    { return nil, driver.ErrSkip }
func (r relay) Close() error                                 { return nil }

func (r relay) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &relayed{relay: r}, nil
}

type relayed struct {
	relay
	first []driver.Value // the first row, until it is changed
	begun bool           // there was one
}

func (r *relayed) Columns() []string {
	if r.first != nil {
		r.change(r.first)
		r.first = nil
	}
	return r.names
}

func (r *relayed) Next(to []driver.Value) error {
	if !r.rows.Next() {
		return cmp.Or(r.rows.Err(), r.end(), io.EOF)
	}
	places := make([]any, len(to))
	for i := range to {
		places[i] = (*any)(&to[i])
	}
	if err := r.rows.Scan(places...); err != nil {
		return err
	}
	if r.begun {
		r.first = nil
		r.change(to)
	} else {
		r.first, r.begun = to, true // database/sql scans from there
	}
	return nil
}

func (r *relayed) Close() error { return cmp.Or(r.rows.Close(), r.end()) }

func (r *relayed) ColumnTypeScanType(i int) reflect.Type        { return r.types[i].ScanType() }
func (r *relayed) ColumnTypeDatabaseTypeName(i int) string      { return r.types[i].DatabaseTypeName() }
func (r *relayed) ColumnTypeLength(i int) (int64, bool)         { return r.types[i].Length() }
func (r *relayed) ColumnTypeNullable(i int) (nullable, ok bool) { return r.types[i].Nullable() }
func (r *relayed) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	return r.types[i].DecimalSize()
}
