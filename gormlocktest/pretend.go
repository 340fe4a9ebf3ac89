package gormlocktest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/install"
	"github.com/gormlock/gormlock/internal/pretend"
)

// ErrNotATest says that a program that is not a test called [PretendLocks].
var ErrNotATest = errors.New("gormlocktest: locks can be pretended only in tests")

// PretendLocks lets a test run code that takes advisory locks on SQLite. They are then kept in the memory of the process:
// those of WithXactLock, XactLock, AcquireXactLock and Locking. They exclude and wait as on PostgreSQL, with Try, Timeout,
// Shared, DefaultTimeout and the end of a context; a deadlock is an error that Attempts repeats. They end with the
// transaction, or with the rollback to a savepoint set before. Call it after db.Use has installed gormlock and before the
// first statement.
//
// It is only for tests, because it does not exclude other processes. In any other program it returns [ErrNotATest] and
// changes nothing. It needs no testing.TB, so TestMain can call it. Without it, and after an error of it, a lock on
// SQLite is gormlock.ErrNotPostgres.
//
// All *gorm.DB for which PretendLocks was called exclude each other if they are open on the same file, or on the same
// database in memory. PretendLocks creates a table in a database in memory for that, gormlock_pretended.
//
// What differs from PostgreSQL:
//
//   - Row locks with Try or Timeout, SkipLocked, Claim, LockRow, Once, package work, leases, session locks and package
//     advisory are not pretended. They are still ErrNotPostgres. [Hold], [Held] and the like need a PostgreSQL, and end
//     the test without one.
//   - A transaction of db.Begin or db.Transaction under PlainTransactions, or on db.Connection, is ErrNotPostgres: its end is
//     not seen. [gormlock.Transaction] works there.
//   - A statement whose own context ends leaves its transaction open, as SQLite does; on PostgreSQL the transaction is lost with
//     its connection.
//   - Isolation levels are ignored: ErrSnapshotTaken does not occur. What a transaction read before it had the lock may
//     be older than the lock; SQLite refuses to write then.
//   - Locks are taken after the BEGIN, so a transaction that is to find the lock held needs a connection of its own. With
//     SetMaxOpenConns(1) it waits for that, and no Timeout of the lock ends the wait. SQLite has one writer at a time: a
//     transaction that writes and then waits for a lock keeps others from writing.
func PretendLocks(db *gorm.DB) error {
	if !testing.Testing() {
		return ErrNotATest
	}
	if err := install.Usable(db); err != nil {
		return err
	}
	if db.Name() != "sqlite" {
		return fmt.Errorf("gormlocktest: locks can be pretended only on SQLite, this is %s", db.Name())
	}
	pool, err := db.DB()
	if err != nil {
		return err
	}
	name, err := nameOf(db.Statement.Context, pool)
	if err != nil {
		return fmt.Errorf("gormlocktest: look up the database that locks are to be pretended for: %w", err)
	}
	locks, _ := spaces.LoadOrStore(name, &pretend.Locks{})
	install.Pretend(db, locks.(*pretend.Locks)) //nolint:forcetypeassert // stored here
	return nil
}

// spaces holds the locks of each database by its name: a path, or what its table says.
var spaces sync.Map

// naming is held while a database in memory is named.
var naming sync.Mutex

// nameOf is a text that identifies a database, whoever opens it.
func nameOf(ctx context.Context, pool *sql.DB) (string, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	var name string
	err = conn.QueryRowContext(ctx, "SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&name)
	if err != nil || name != "" {
		return "file " + name, err
	}
	naming.Lock()
	defer naming.Unlock()
	if _, err := conn.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS gormlock_pretended (id TEXT NOT NULL)"); err != nil {
		return "", err
	}
	_, err = conn.ExecContext(ctx, "INSERT INTO gormlock_pretended SELECT ? WHERE NOT EXISTS (SELECT 1 FROM gormlock_pretended)", rand.Text())
	if err != nil {
		return "", err
	}
	err = conn.QueryRowContext(ctx, "SELECT id FROM gormlock_pretended").Scan(&name)
	return "memory " + name, err
}
