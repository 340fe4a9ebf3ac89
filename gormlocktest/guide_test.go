package gormlocktest_test

// The tests that docs/testing.md shows.

import (
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/glebarez/sqlite"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/gormlocktest"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// Account is the model of the guide.
type Account struct {
	ID, Balance int64
	Version     int64 `gormlock:"version"`
}

// Withdraw is what the guide tests.
func Withdraw(db *gorm.DB, id, amount int64) error {
	return gormlock.Transaction(db, func(tx *gorm.DB) error {
		var account Account
		if err := tx.First(&account, id).Error; err != nil {
			return err
		}
		return tx.Model(&account).Update("balance", account.Balance-amount).Error
	}, gormlock.Locking(accountKey(id), gormlock.Timeout(time.Second)))
}

func accountKey(id int64) lockkey.Key { return gormlock.Key("guide", id) }

func openDB(t *testing.T) *gorm.DB {
	t.Helper()
	db := pgtest.Open(t, pgtest.Schema(), pgtest.Plugin(gormlock.New()))
	if err := errors.Join(db.AutoMigrate(&Account{}), db.Create(&Account{ID: 7, Balance: 100}).Error); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestWithdraw_waits(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	key := accountKey(7)

	rival := gormlocktest.Hold(t, pool, key)
	done := make(chan error, 1)
	go func() { done <- Withdraw(db, 7, 10) }()
	gormlocktest.WaitBlocked(t, pool, key, 1) // it asks for the lock …
	rival.Release()
	if err := <-done; err != nil { // … and goes on when it is free
		t.Error(err)
	}
	gormlocktest.AssertFree(t, pool, key)
}

func TestAccount_secondWriterIsTold(t *testing.T) {
	t.Parallel()
	db := openDB(t)
	var mine, yours Account
	if err := errors.Join(db.First(&mine, 7).Error, db.First(&yours, 7).Error); err != nil {
		t.Fatal(err)
	}
	if err := db.Model(&mine).Update("balance", 90).Error; err != nil {
		t.Fatal(err)
	}
	if err := db.Model(&yours).Update("balance", 95).Error; !errors.Is(err, gormlock.ErrStale) {
		t.Errorf("%v: the second write went through", err)
	}
}

func TestWithdraw_stale(t *testing.T) {
	t.Parallel()
	pool, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}))
	if err == nil {
		err = db.Use(gormlock.New())
	}
	if err != nil {
		t.Fatal(err)
	}

	gormlocktest.ExpectBegin(t, mock, []lockkey.Key{accountKey(7)}, gormlock.Timeout(time.Second))
	mock.ExpectQuery(`^SELECT \* FROM "accounts"`).
		WillReturnRows(sqlmock.NewRows([]string{"id", "balance", "version"}).AddRow(7, 100, 3))
	gormlocktest.ExpectVersionedUpdate(mock, "accounts", "version").WillReturnResult(sqlmock.NewResult(0, 0)) // no row
	gormlocktest.ExpectStale(mock, "accounts", []string{"id", "version"}, []driver.Value{7, 4})               // it is at 4
	gormlocktest.ExpectRollback(mock)

	if err := Withdraw(db, 7, 10); !errors.Is(err, gormlock.ErrStale) {
		t.Error(err)
	}
	if err := mock.ExpectationsWereMet(); err != nil {
		t.Error(err)
	}
}

// TestOnSQLite: what the guide says of it.
func TestOnSQLite(t *testing.T) {
	t.Parallel()
	db, err := gorm.Open(sqlite.Open("file:"+t.TempDir()+"/test.db"), &gorm.Config{Logger: logger.Discard})
	if err == nil {
		err = db.Use(gormlock.New())
	}
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	mine := Account{ID: 7, Balance: 100}
	if err := errors.Join(db.AutoMigrate(&mine), db.Create(&mine).Error); err != nil {
		t.Fatal(err)
	}
	yours := mine
	rolledBack := errors.New("rolled back")
	for name, c := range map[string]struct{ err, want error }{
		"a version, rolled back": {db.Transaction(func(tx *gorm.DB) error {
			return errors.Join(tx.Model(&mine).Update("balance", 90).Error, rolledBack)
		}), rolledBack},
		"and written":     {db.Model(&mine).Update("balance", 90).Error, nil},
		"a stale version": {db.Model(&yours).Update("balance", 95).Error, gormlock.ErrStale},
		"IfUnchanged":     {db.Model(&mine).Clauses(gormlock.IfUnchanged(&yours, "balance")).Update("balance", 1).Error, gormlock.ErrStale},
		"a lock of a key": {Withdraw(db, 7, 10), gormlock.ErrNotPostgres},
		"a lock of a row": {db.Transaction(func(tx *gorm.DB) error { return gormlock.LockRow(tx, &mine) }), gormlock.ErrNotPostgres},
		"Claim":           {claimError(db), gormlock.ErrNotPostgres},
		"Once":            {db.Transaction(func(tx *gorm.DB) error { _, err := gormlock.Once(tx, "k", one); return err }), gormlock.ErrNotPostgres},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
}

func claimError(db *gorm.DB) error {
	_, err := gormlock.Claim[Account](db, 1, map[string]any{"balance": 0})
	return err
}
