package gormlocktest_test

import (
	"fmt"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/gormlocktest"
	"github.com/gormlock/gormlock/lockkey"
)

// withdraw is what is tested: it takes an amount from an account, under a lock.
func withdraw(db *gorm.DB, id, amount int64) error {
	return gormlock.Transaction(db, func(tx *gorm.DB) error {
		return tx.Table("accounts").Where("id = ?", id).Update("balance", gorm.Expr("balance - ?", amount)).Error
	}, gormlock.Locking(gormlock.Key("account", id), gormlock.Try()))
}

// withdrawals are two of them, one whose lock is free and one whose lock is not.
func withdrawals(t testing.TB) []error {
	t.Helper()
	pool, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}))
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Use(gormlock.New()); err != nil {
		t.Fatal(err)
	}
	keys := []lockkey.Key{gormlock.Key("account", 7)}

	gormlocktest.ExpectBegin(t, mock, keys, gormlock.Try())
	mock.ExpectExec(`^UPDATE "accounts" SET "balance"=`).WillReturnResult(sqlmock.NewResult(0, 1))
	gormlocktest.ExpectCommit(mock)

	gormlocktest.ExpectBegin(t, mock, keys, gormlock.Try()).WillReturnResult(gormlocktest.Refused)
	gormlocktest.ExpectRollback(mock)

	results := []error{withdraw(db, 7, 10), withdraw(db, 7, 10)}
	if err := mock.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
	return results
}

// Withdrawals under a lock, tested without a server.
func Example() {
	var t testing.TB = &testing.T{} // that of your test
	for _, err := range withdrawals(t) {
		fmt.Println(err)
	}
	fmt.Println("failed:", t.Failed())
	// Output:
	// <nil>
	// gormlock: lock account/7: held by another session
	// failed: false
}
