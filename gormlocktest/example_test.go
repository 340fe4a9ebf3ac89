package gormlocktest_test

import (
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/gormlocktest"
	"github.com/gormlock/gormlock/lockkey"
)

// A transfer under a lock, tested without a server.
func Example() {
	test := func(t *testing.T) {
		t.Helper()
		pool, mock, err := sqlmock.New()
		if err != nil {
			t.Fatal(err)
		}
		db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}))
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Use(gormlock.New()); err != nil {
			t.Fatal(err)
		}
		key := gormlock.Key("account", 7)

		gormlocktest.ExpectBegin(t, mock, []lockkey.Key{key})
		mock.ExpectExec(`UPDATE "accounts" SET "balance"=`).WillReturnResult(sqlmock.NewResult(0, 1))
		gormlocktest.ExpectCommit(mock)

		err = gormlock.Transaction(db, func(tx *gorm.DB) error {
			return tx.Table("accounts").Where("id = 7").Update("balance", 90).Error
		}, gormlock.Locking(key))
		if err != nil {
			t.Fatal(err)
		}
		if err := mock.ExpectationsWereMet(); err != nil {
			t.Error(err)
		}
	}
	_ = test
}
