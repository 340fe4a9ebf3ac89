package sqltx

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"reflect"
)

// OnRows says what to do with rows on their way to the caller. Each function may be nil.
type OnRows struct {
	// Change sees each row before it is scanned. It sees the first row when the caller asks for the columns after stepping to that row: by then
	// the caller has decided what to read it into.
	Change func(row []driver.Value)
	// End returns an error for the end of the rows, if they have none. If the caller closes the rows before their end, Close returns it.
	End func() error
	// Closed is called when the caller closes the rows. By then the caller has stored what it has read.
	Closed func()
}

// Relay returns rows that pass on other rows. They stay open at their end until the caller closes them. Only database/sql can make a *sql.Rows, so
// these come from a database that has nothing else.
func Relay(rows *sql.Rows, on OnRows) (*sql.Rows, error) {
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	only := sql.OpenDB(relay{rows: rows, names: names, types: types, on: on})
	defer func() { _ = only.Close() }()                // the connection lives as long as the rows
	return only.QueryContext(context.Background(), "") //nolint:sqlclosecheck // the caller closes them
}

// relay is the database, its connection and its rows.
type relay struct {
	rows  *sql.Rows
	names []string
	types []*sql.ColumnType
	on    OnRows
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
	begun bool           // the first row was read
}

func (r *relayed) Columns() []string {
	if r.first != nil {
		r.on.Change(r.first)
		r.first = nil
	}
	return r.names
}

func (r *relayed) Next(to []driver.Value) error {
	if !r.rows.Next() {
		return cmp.Or(r.rows.Err(), r.ended(), io.EOF)
	}
	places := make([]any, len(to))
	for i := range to {
		places[i] = (*any)(&to[i])
	}
	if err := r.rows.Scan(places...); err != nil {
		return err
	}
	if r.on.Change == nil {
		return nil
	}
	if r.begun {
		r.first = nil
		r.on.Change(to)
	} else {
		r.first, r.begun = to, true // database/sql scans from this slice
	}
	return nil
}

func (r *relayed) ended() error {
	if r.on.End == nil {
		return nil
	}
	return r.on.End()
}

func (r *relayed) Close() error {
	if r.on.Closed != nil {
		r.on.Closed()
	}
	return cmp.Or(r.rows.Close(), r.ended())
}

// HasNextResultSet keeps database/sql from closing the rows at their end.
func (r *relayed) HasNextResultSet() bool { return true }

func (r *relayed) NextResultSet() error { return io.EOF }

func (r *relayed) ColumnTypeScanType(i int) reflect.Type        { return r.types[i].ScanType() }
func (r *relayed) ColumnTypeDatabaseTypeName(i int) string      { return r.types[i].DatabaseTypeName() }
func (r *relayed) ColumnTypeLength(i int) (int64, bool)         { return r.types[i].Length() }
func (r *relayed) ColumnTypeNullable(i int) (nullable, ok bool) { return r.types[i].Nullable() }
func (r *relayed) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	return r.types[i].DecimalSize()
}
