// Package otherdb recognises databases that are not PostgreSQL: by the driver of a pool, before anything is sent; by the
// type of a driver's error, where a wrapper hides the driver; and by a connection string. It imports no driver.
package otherdb

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"reflect"
	"strings"
)

// ErrNotPostgres is that of the root, which says what it means.
var ErrNotPostgres = errors.New("gormlock: needs PostgreSQL")

// Database is one that is not PostgreSQL.
type Database struct {
	name    string
	instead string   // what works there
	drivers []string // the paths of their packages
	begins  []string // of connection strings, in lower case
	within  []string // connection strings
}

var known = []*Database{
	{
		name:    "MySQL or MariaDB",
		instead: "versions, row locks, Claim and fences in rows work there, through GORM",
		drivers: []string{"github.com/go-sql-driver/mysql", "github.com/go-mysql-org/go-mysql"},
		begins:  []string{"mysql:", "mysqlx:", "mariadb:", "jdbc:mysql:", "jdbc:mariadb:"},
		within:  []string{"@tcp(", "@tcp4(", "@tcp6(", "@unix("},
	},
	{
		name:    "SQLite",
		instead: "versions and fences in rows work there, through GORM",
		drivers: []string{
			"github.com/mattn/go-sqlite3", "modernc.org/sqlite", "github.com/glebarez/go-sqlite", "github.com/ncruces/go-sqlite3",
			"github.com/tursodatabase/go-libsql", "github.com/tursodatabase/libsql-client-go",
		},
		begins: []string{"sqlite:", "sqlite3:", "file:", "libsql:", "jdbc:sqlite:", ":memory:"},
	},
	{
		name:    "SQL Server",
		drivers: []string{"github.com/microsoft/go-mssqldb", "github.com/denisenkom/go-mssqldb"},
		begins:  []string{"sqlserver:", "mssql:", "jdbc:sqlserver:", "server=", "data source="},
	},
	{name: "Oracle", drivers: []string{"github.com/godror/godror", "github.com/sijms/go-ora"}, begins: []string{"oracle:", "jdbc:oracle:"}},
	{name: "ClickHouse", drivers: []string{"github.com/ClickHouse/clickhouse-go"}, begins: []string{"clickhouse:", "jdbc:clickhouse:"}},
	{name: "DuckDB", drivers: []string{"github.com/marcboeker/go-duckdb", "github.com/duckdb/duckdb-go"}, begins: []string{"duckdb:"}},
	{name: "Snowflake", drivers: []string{"github.com/snowflakedb/gosnowflake"}, begins: []string{"snowflake:"}},
}

// Under is the database that a *sql.DB, what embeds it, or a *sql.Conn leads to, by the driver. It is nil for PostgreSQL, for a
// driver that is not known, and for a *sql.Tx, which does not tell its driver. It asks the server nothing.
func Under(handle any) (found *Database) {
	if db, is := handle.(*sql.DB); is && db == nil {
		return nil
	}
	switch of := handle.(type) {
	case interface{ Driver() driver.Driver }:
		return ofType(reflect.TypeOf(of.Driver()))
	case *sql.Conn:
		return underConn(of)
	}
	return nil
}

// underConn is apart because what it keeps for Raw is on the heap.
func underConn(conn *sql.Conn) (found *Database) {
	if conn != nil {
		_ = conn.Raw(func(made any) error { found = OfConn(made); return nil }) // a closed one is of none
	}
	return found
}

// OfConn is the database of a connection as [sql.Conn.Raw] gives it.
func OfConn(made any) *Database { return ofType(reflect.TypeOf(Innermost(made))) }

// Innermost is the connection that the driver has made, inside of wrappers such as otelsql's.
func Innermost(made any) any {
	for range 8 {
		wrapper, is := made.(interface{ Raw() driver.Conn })
		if !is {
			break
		}
		made = wrapper.Raw()
	}
	return made
}

// Said is the database whose driver has made err, or an error in it. It is nil where none has, and where an error of
// PostgreSQL is among them.
func Said(err error) *Database {
	found, postgres := said(err)
	if postgres {
		return nil
	}
	return found
}

func said(err error) (found *Database, postgres bool) {
	if err == nil {
		return nil, false
	}
	if found = ofType(reflect.TypeOf(err)); found != nil {
		return found, false
	}
	if _, postgres = err.(interface{ SQLState() string }); postgres {
		return nil, true
	}
	var inner []error
	switch wrapper := err.(type) { //nolint:errorlint // each error is looked at
	case interface{ Unwrap() error }:
		inner = []error{wrapper.Unwrap()}
	case interface{ Unwrap() []error }:
		inner = wrapper.Unwrap()
	}
	for _, one := range inner {
		by, isPostgres := said(one)
		if found == nil {
			found = by
		}
		postgres = postgres || isPostgres
	}
	return found, postgres
}

func ofType(t reflect.Type) *Database {
	if t == nil {
		return nil
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Name() == "MySQLError" { // of a copy of the driver
		return known[0]
	}
	path := t.PkgPath()
	for _, d := range known {
		for _, of := range d.drivers {
			if rest, under := strings.CutPrefix(path, of); under && (rest == "" || rest[0] == '/') {
				return d
			}
		}
	}
	return nil
}

// String names the database for people.
func (d *Database) String() string { return d.name }

// Refusal is the error of what was asked for and needs PostgreSQL. cause is what the database answered, nil where it was
// not asked.
func (d *Database) Refusal(what string, cause error) error { return &refusal{d, what, cause} }

type refusal struct {
	by    *Database
	what  string
	cause error
}

func (r *refusal) Error() string {
	text := ErrNotPostgres.Error() + ", not " + r.by.name + ": " + r.what
	if r.by.instead != "" {
		text += "; " + r.by.instead
	}
	return text
}

func (r *refusal) Unwrap() []error {
	if r.cause == nil {
		return []error{ErrNotPostgres}
	}
	return []error{ErrNotPostgres, r.cause}
}
