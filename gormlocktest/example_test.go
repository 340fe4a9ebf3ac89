package gormlocktest_test

import (
	"fmt"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/gormlocktest"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// withdraw is what is tested: it takes an amount from an account, under a lock.
func withdraw(db *gorm.DB, id, amount int64) error {
	return gormlock.Transaction(db, func(tx *gorm.DB) error {
		return tx.Table("accounts").Where("id = ?", id).Update("balance", gorm.Expr("balance - ?", amount)).Error
	}, gormlock.Locking(gormlock.Key("account", id), gormlock.Try()))
}

// mocked is a db of sqlmock, with the plugin.
func mocked(t testing.TB) (db *gorm.DB, mock sqlmock.Sqlmock, end func()) {
	t.Helper()
	pool, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	db, err = gorm.Open(postgres.New(postgres.Config{Conn: pool}))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Use(gormlock.New()); err != nil {
		t.Fatal(err)
	}
	return db, mock, func() { _ = pool.Close() }
}

// A withdrawal under a lock, tested without a server.
func Example() {
	t := &testing.T{} // that of your test
	db, mock, end := mocked(t)
	defer end()
	keys := []lockkey.Key{gormlock.Key("account", 7)}

	gormlocktest.ExpectBegin(t, mock, keys, gormlock.Try())
	mock.ExpectExec(`^UPDATE "accounts" SET "balance"=`).WillReturnResult(sqlmock.NewResult(0, 1))
	gormlocktest.ExpectCommit(mock)

	if err := withdraw(db, 7, 10); err != nil {
		t.Error(err)
	}
	if err := mock.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
	fmt.Println("failed:", t.Failed())
	// Output: failed: false
}

// The lock is not free.
func ExampleExpectBegin() {
	t := &testing.T{} // that of your test
	db, mock, end := mocked(t)
	defer end()
	keys := []lockkey.Key{gormlock.Key("account", 7)}

	gormlocktest.ExpectBegin(t, mock, keys, gormlock.Try()).WillReturnResult(gormlocktest.Refused)
	gormlocktest.ExpectRollback(mock)

	fmt.Println(withdraw(db, 7, 10))
	// Output: gormlock: lock account/7: held by another session
}

// A rival holds the lock, on a real server: what is tested has to notice.
func ExampleHold() {
	t := pgtest.NewExample() // a *testing.T of yours
	defer t.End()
	pool, key := pgtest.SQLDB(t), gormlock.Key("example", "held")

	rival := gormlocktest.Hold(t, pool, key)
	gormlocktest.AssertHeld(t, pool, key)
	rival.Release()
	gormlocktest.AssertFree(t, pool, key)
	fmt.Println("held, and free again")
	// Output: held, and free again
}

// A db that some other place of the program opened has the plugin.
func ExampleAssertInstalled() {
	t := &testing.T{} // that of your test
	db, _, end := mocked(t)
	defer end()
	gormlocktest.AssertInstalled(t, db)
	fmt.Println("failed:", t.Failed())
	// Output: failed: false
}
