package pgtest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/gorm"
)

// conns has the connections of Open by the server process of each.
var conns sync.Map // of uint32 to *pgx.Conn

var keepConns = stdlib.OptionAfterConnect(func(_ context.Context, conn *pgx.Conn) error {
	conns.Store(conn.PgConn().PID(), conn)
	return nil
})

// PgxTx returns the pgx transaction of tx, which Open made. Only tx may end it.
func PgxTx(tx *gorm.DB) (pgx.Tx, error) {
	var pid uint32
	err := tx.Session(&gorm.Session{NewDB: true, Context: context.Background()}).Raw("select pg_backend_pid()").Row().Scan(&pid)
	if err != nil {
		return nil, err
	}
	conn, ok := conns.Load(pid)
	if !ok {
		return nil, fmt.Errorf("pgtest: no connection to the process %d", pid)
	}
	return borrowed{conn.(*connection)}, nil //nolint:forcetypeassert // keepConns stored it
}

// PgxConn lends run a connection of the pool of db, which Open made.
func PgxConn(db *gorm.DB, run func(conn *pgx.Conn) error) error {
	pool, err := db.DB()
	if err != nil {
		return err
	}
	conn, err := pool.Conn(db.Statement.Context)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return conn.Raw(func(driver any) error { return run(driver.(*stdlib.Conn).Conn()) }) //nolint:forcetypeassert // it is stdlib's pool
}

type connection = pgx.Conn

// borrowed is a transaction that its owner ends.
type borrowed struct{ *connection }

var errBorrowed = errors.New("pgtest: the transaction is GORM's to end")

func (b borrowed) Conn() *pgx.Conn { return b.connection }

func (b borrowed) Begin(ctx context.Context) (pgx.Tx, error) {
	_, err := b.Exec(ctx, "savepoint borrowed")
	return savepoint{b}, err
}

func (borrowed) Commit(context.Context) error { return errBorrowed }

func (borrowed) Rollback(context.Context) error { return errBorrowed }

func (borrowed) LargeObjects() pgx.LargeObjects { panic(errBorrowed) }

// savepoint is a savepoint in a borrowed transaction. There is only one at a time.
type savepoint struct{ borrowed }

func (s savepoint) Commit(ctx context.Context) error {
	_, err := s.Exec(ctx, "release savepoint borrowed")
	return err
}

func (s savepoint) Rollback(ctx context.Context) error {
	_, err := s.Exec(ctx, "rollback to savepoint borrowed; release savepoint borrowed")
	return err
}
