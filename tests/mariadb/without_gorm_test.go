package mariadb_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// other is a database that is not PostgreSQL, as a program has opened it.
type other struct {
	pool   *sql.DB
	log    *gorm.DB // whose server tells what it was sent; nil: it does not, or is asked
	tables string   // the query that lists them
}

const (
	tablesOfMariaDB = "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"
	tablesOfSQLite  = "SELECT name FROM sqlite_master"
)

// others open each kind.
var others = map[string]func(t *testing.T) other{
	"MariaDB":                         func(t *testing.T) other { t.Helper(); return onMariaDB(t, "", nil) },
	"MariaDB, many statements a text": func(t *testing.T) other { t.Helper(); return onMariaDB(t, "&multiStatements=true", nil) },
	"MariaDB, no placeholders":        func(t *testing.T) other { t.Helper(); return onMariaDB(t, "&interpolateParams=true", nil) },
	"MariaDB, hidden":                 func(t *testing.T) other { t.Helper(); return onMariaDB(t, "", &hidden{}) },
	"MariaDB, hidden, errors too": func(t *testing.T) other {
		t.Helper()
		return onMariaDB(t, "&multiStatements=true", &hidden{says: true})
	},
	"SQLite":                     func(t *testing.T) other { t.Helper(); return onSQLite(t, nil) },
	"SQLite, hidden":             func(t *testing.T) other { t.Helper(); return onSQLite(t, &hidden{}) },
	"SQLite, hidden, errors too": func(t *testing.T) other { t.Helper(); return onSQLite(t, &hidden{says: true}) },
}

func onMariaDB(t *testing.T, params string, as *hidden) other {
	t.Helper()
	dsn := mariaserver.DSN(t) + params
	db := mariaserver.OpenDSN(t, dsn, nil)
	pool, err := db.DB()
	stand.Must(t, err)
	if as != nil {
		return other{hide(t, pool.Driver(), dsn, *as), nil, tablesOfMariaDB}
	}
	return other{pool, db, tablesOfMariaDB}
}

func onSQLite(t *testing.T, as *hidden) other {
	t.Helper()
	pool, err := stand.OnSQLite(t, nil).DB()
	stand.Must(t, err)
	if as != nil {
		pool = hide(t, pool.Driver(), "file:"+filepath.Join(t.TempDir(), "db"), *as)
	}
	return other{pool, nil, tablesOfSQLite}
}

// hide opens a pool behind a wrapper.
func hide(t *testing.T, d driver.Driver, dsn string, as hidden) *sql.DB {
	t.Helper()
	as.Connector = named{d, dsn}
	pool := sql.OpenDB(as)
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}

type named struct {
	driver driver.Driver
	dsn    string
}

func (n named) Connect(context.Context) (driver.Conn, error) { return n.driver.Open(n.dsn) }
func (n named) Driver() driver.Driver                        { return n.driver }

// What is given a pool, a connection or a transaction and no GORM says ErrNotPostgres too. It sends nothing where the pool
// or the connection tells its driver; where that is hidden the database executes nothing, and nothing is left behind.
func TestNeedsPostgres_withoutGORM(t *testing.T) {
	t.Parallel()
	stand.Beside(t, others, func(t *testing.T, open func(t *testing.T) other) {
		at := open(t)
		for _, door := range inOrder(withoutGORM) {
			for _, given := range inOrder(withoutGORM[door]) {
				at.refuses(t, door, given)
			}
		}
		stand.Equal(t, "tables", strings.Join(pgtest.Texts(t, at.pool, at.tables), ", "), "")
	})
}

// refuses goes through a door.
func (o other) refuses(t *testing.T, door, given string) {
	t.Helper()
	ctx := t.Context()
	h := handle{pool: o.pool}
	var err error
	if strings.HasPrefix(given, "conn") {
		h.conn, err = o.pool.Conn(ctx)
		stand.Must(t, err)
		defer func() { _ = h.conn.Close() }()
	}
	if strings.HasPrefix(given, "tx") {
		h.tx, err = o.pool.BeginTx(ctx, nil)
		stand.Must(t, err)
		defer func() { _ = h.tx.Rollback() }()
	}
	try := func() { err = withoutGORM[door][given](ctx, h) }
	switch {
	case o.log != nil && h.tx == nil:
		for _, sent := range mariaserver.Statements(t, o.log, try) {
			t.Errorf("%s, %s: sent %s", door, given, sent)
		}
	default:
		try()
	}
	if !errors.Is(err, gormlock.ErrNotPostgres) || strings.Count(err.Error(), "gormlock: ") != 1 || !strings.Contains(err.Error(), "there, through GORM") {
		t.Errorf("%s, %s: %v", door, given, err)
	}
	if h.conn != nil {
		if err := h.conn.PingContext(ctx); err != nil {
			t.Errorf("%s: the connection after it: %v", door, err)
		}
	}
	if h.tx == nil {
		return
	}
	var one int
	if err := h.tx.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil {
		t.Errorf("%s: the transaction after it: %v", door, err)
	}
	if _, err := h.tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT gormlock"); err == nil {
		t.Errorf("%s has left a savepoint", door)
	}
}

// A PostgreSQL is never taken for another database, whatever it answers and however its driver is wrapped.
func TestNeedsPostgres_isThere(t *testing.T) {
	t.Parallel()
	plainly := pgtest.SQLDB(t, pgtest.Schema())
	// The tables are missing in the empty schema, and after the first pass they are there.
	for name, pool := range map[string]*sql.DB{
		"pgx":                     plainly,
		"pgx, hidden":             hide(t, plainly.Driver(), pgtest.DSN(t), hidden{}),
		"pgx, hidden, errors too": hide(t, plainly.Driver(), pgtest.DSN(t), hidden{says: true}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended, end := context.WithCancel(t.Context())
			end()
			closed := hide(t, plainly.Driver(), pgtest.DSN(t), hidden{})
			_ = closed.Close()
			for _, door := range inOrder(withoutGORM) {
				if door == "inspect.KeepNames" || strings.HasPrefix(door, "gormlocktest.") {
					continue // which wait for what does not happen here
				}
				for given, do := range withoutGORM[door] {
					for state, ctx := range map[string]context.Context{"": t.Context(), "ended": ended, "aborted": t.Context(), "closed": t.Context()} {
						conn, err := pool.Conn(t.Context())
						stand.Must(t, err)
						tx, err := pool.BeginTx(t.Context(), nil)
						stand.Must(t, err)
						h := handle{pool, conn, tx}
						switch state {
						case "aborted":
							_, _ = tx.ExecContext(ctx, "SELECT 1/0")
						case "closed":
							h.pool = closed
							_, _ = conn.Close(), tx.Rollback()
						}
						bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
						if err := do(bounded, h); errors.Is(err, gormlock.ErrNotPostgres) {
							t.Errorf("%s, %s, %s: %v", door, given, state, err)
						}
						cancel()
						_ = tx.Rollback()
						_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // and with it the lock of its session
					}
				}
			}
		})
	}
}

// Who is told so by a driver's error finds it in the error; an end of the context and a closed pool are what they are.
func TestNeedsPostgres_keepsWhatWasAnswered(t *testing.T) {
	t.Parallel()
	at := onMariaDB(t, "", &hidden{})
	begin := func() *sql.Tx {
		tx, err := at.pool.BeginTx(t.Context(), nil)
		stand.Must(t, err)
		t.Cleanup(func() { _ = tx.Rollback() })
		return tx
	}
	do := withoutGORM["advisory.Acquire"]["tx"]
	err := do(t.Context(), handle{tx: begin()})
	var answered interface{ Is(error) bool } // of *mysql.MySQLError
	if !errors.As(err, &answered) || strings.Contains(err.Error(), "syntax") {
		t.Errorf("%v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := do(ended, handle{tx: begin()}); !errors.Is(err, context.Canceled) || errors.Is(err, gormlock.ErrNotPostgres) {
		t.Errorf("ended: %v", err)
	}
	over := begin()
	_ = over.Rollback()
	if err := do(t.Context(), handle{tx: over}); !errors.Is(err, sql.ErrTxDone) || errors.Is(err, gormlock.ErrNotPostgres) {
		t.Errorf("over: %v", err)
	}
}
