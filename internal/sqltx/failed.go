package sqltx

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// FailedRow is a row whose Scan and Err return err. Only database/sql can make a *sql.Row, so this one comes from a database that
// refuses every connection.
func FailedRow(err error) *sql.Row {
	refusing := sql.OpenDB(refuse{err})
	defer func() { _ = refusing.Close() }()
	return refusing.QueryRowContext(context.Background(), "")
}

type refuse struct{ err error }

func (r refuse) Connect(context.Context) (driver.Conn, error) { return nil, r.err }
func (r refuse) Driver() driver.Driver                        { return nil }

// FailedValue is an argument that fails the statement it is given to.
type FailedValue struct{ Err error }

// Value implements [driver.Valuer]. GORM writes the value into the text of a view in spite of the error. Therefore it is a text that no server
// accepts as a boolean.
func (v FailedValue) Value() (driver.Value, error) { return v.Err.Error(), v.Err }

// GoString keeps drivers that quote the argument in their message from printing its fields.
func (v FailedValue) GoString() string { return "an argument that cannot be" }
