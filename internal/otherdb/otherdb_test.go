package otherdb_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/gormlock/gormlock/internal/otherdb"
)

// MySQLError has the name of the error of go-sql-driver/mysql, as a copy of that driver has it.
type MySQLError struct{ Number uint16 }

func (*MySQLError) Error() string { return "Error 1064" }

func TestSaid(t *testing.T) {
	t.Parallel()
	answered := &MySQLError{1064}
	for _, err := range []error{answered, fmt.Errorf("traced: %w", answered), errors.Join(io.EOF, fmt.Errorf("b: %w", answered))} {
		if got := otherdb.Said(err); got == nil || got.String() != "MySQL or MariaDB" {
			t.Errorf("%v: %v", err, got)
		}
	}
	syntax := &pgconn.PgError{Code: "42601", Message: `syntax error: github.com/mattn/go-sqlite3, MySQLError`}
	for _, err := range []error{
		nil, io.EOF, sql.ErrNoRows, sql.ErrConnDone, context.Canceled, syntax, fmt.Errorf("b: %w", syntax),
		&pgconn.ConnectError{}, errors.Join(answered, syntax), errors.Join(syntax, answered), fmt.Errorf("%w %w", answered, syntax),
	} {
		if got := otherdb.Said(err); got != nil {
			t.Errorf("%v: %v", err, got)
		}
	}
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	answered := &MySQLError{1064}
	err := otherdb.Said(answered).Refusal("lock report/1", answered)
	var found *MySQLError
	if !errors.Is(err, otherdb.ErrNotPostgres) || !errors.As(err, &found) ||
		err.Error() != "gormlock: needs PostgreSQL, not MySQL or MariaDB: lock report/1; versions, row locks, Claim and fences in rows work there, through GORM" {
		t.Error(err)
	}
	if got := otherdb.Named("sqlserver://h").Refusal("leases", nil).Error(); got != "gormlock: needs PostgreSQL, not SQL Server: leases" {
		t.Error(got)
	}
}

// A pool of PostgreSQL, what is no pool, and a nil one are none of another database, and to ask costs nothing.
func TestUnder(t *testing.T) { //nolint:paralleltest // it counts allocations
	pool := stdlib.OpenDB(pgx.ConnConfig{})
	defer func() { _ = pool.Close() }()
	var none *sql.DB
	for _, on := range []any{pool, struct{ *sql.DB }{pool}, none, (*sql.Conn)(nil), &sql.Tx{}, nil, 1} {
		if got := otherdb.Under(on); got != nil {
			t.Errorf("%T: %v", on, got)
		}
		if n := testing.AllocsPerRun(100, func() { otherdb.Under(on) }); n > 0 {
			t.Errorf("%T: %v allocations", on, n)
		}
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"root@tcp(127.0.0.1:3306)/shop?parseTime=true":        "MySQL or MariaDB",
		"root:p=w@tcp(db)/shop":                               "MySQL or MariaDB",
		"root@unix(/run/mysqld/mysqld.sock)/shop":             "MySQL or MariaDB",
		" MySQL://root:x@db:3306/shop":                        "MySQL or MariaDB",
		"mariadb://db/shop":                                   "MySQL or MariaDB",
		"file:shop.db?cache=shared&_pragma=foreign_keys(1)":   "SQLite",
		"sqlite:shop.db":                                      "SQLite",
		":memory:":                                            "SQLite",
		"sqlserver://sa:x@db:1433?database=shop":              "SQL Server",
		"server=db;user id=sa;password=x;database=shop":       "SQL Server",
		"oracle://u:x@db:1521/shop":                           "Oracle",
		"":                                                    "",
		"postgres://u:x@db/shop":                              "",
		"postgresql://u:mysql:@tcp(db)/shop":                  "",
		"POSTGRES://u@db/shop":                                "",
		"host=db user=u password='x@tcp(db)' dbname=shop":     "",
		"password=file:x@tcp(y)/z":                            "",
		"password = mysql://x@tcp(y)/z host=db":               "",
		"service=mysql":                                       "",
		"user=u host=/cloudsql/project:region:shop dbname=db": "",
		"shop.db":  "",
		"nonsense": "",
	} {
		got := ""
		if found := otherdb.Named(dsn); found != nil {
			got = found.String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", dsn, got, want)
		}
	}
	for _, name := range []string{"application_name", "search_path", "my.setting", "x-migrations-table", "_pq_.option", "größe"} {
		if !otherdb.IsKeyword(name) {
			t.Errorf("%s may be a setting", name)
		}
	}
}
