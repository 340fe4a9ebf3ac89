package gormlocktest_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/gormlocktest"
	"github.com/gormlock/gormlock/lockkey"
)

type account struct {
	ID      int64
	Balance int64
	Version int64 `gormlock:"version"`
}

type task struct {
	ID    int64
	State string
}

func mocked(t testing.TB) (*gorm.DB, sqlmock.Sqlmock) {
	t.Helper()
	pool, mock, err := sqlmock.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mock.ExpectationsWereMet(); err != nil {
			t.Error(err)
		}
		_ = pool.Close()
	})
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Use(gormlock.New()); err != nil {
		t.Fatal(err)
	}
	return db, mock
}

// TestExpectations: what is expected is what gormlock sends.
func TestExpectations(t *testing.T) {
	t.Parallel()
	keys := []lockkey.Key{gormlock.Key("a", 1), gormlock.Key("b", 2)}
	one := keys[:1]
	nothing := func(*gorm.DB) error { return nil }
	for name, c := range map[string]struct {
		expect func(t *testing.T, mock sqlmock.Sqlmock)
		do     func(db *gorm.DB) error
		want   error
	}{
		"a transaction with a lock": {func(t *testing.T, mock sqlmock.Sqlmock) {
			t.Helper()
			gormlocktest.ExpectBegin(t, mock, one)
			gormlocktest.ExpectCommit(mock)
		}, func(db *gorm.DB) error { return gormlock.Transaction(db, nothing, gormlock.Locking(one[0])) }, nil},
		"with two, and a timeout": {func(t *testing.T, mock sqlmock.Sqlmock) {
			t.Helper()
			gormlocktest.ExpectBegin(t, mock, keys, gormlock.Timeout(time.Second))
			gormlocktest.ExpectCommit(mock)
		}, func(db *gorm.DB) error {
			return gormlock.Transaction(db, nothing, gormlock.Locking(keys[1], gormlock.Timeout(time.Second)), gormlock.Locking(keys[0]))
		}, nil},
		"that is refused": {func(t *testing.T, mock sqlmock.Sqlmock) {
			t.Helper()
			gormlocktest.ExpectBegin(t, mock, one, gormlock.Try()).WillReturnResult(gormlocktest.Refused)
			gormlocktest.ExpectRollback(mock)
		}, func(db *gorm.DB) error {
			return gormlock.Transaction(db, nothing, gormlock.Locking(one[0], gormlock.Try()))
		}, gormlock.ErrNotAcquired},
		"a statement with a lock": {func(t *testing.T, mock sqlmock.Sqlmock) {
			t.Helper()
			gormlocktest.ExpectBegin(t, mock, one)
			mock.ExpectExec(`UPDATE "tasks"`).WillReturnResult(sqlmock.NewResult(0, 1))
			gormlocktest.ExpectCommit(mock)
		}, func(db *gorm.DB) error {
			return db.Scopes(gormlock.WithXactLock(one[0])).Model(&task{ID: 1}).Update("state", "x").Error
		}, nil},
		"a lock in an open transaction": {func(t *testing.T, mock sqlmock.Sqlmock) {
			t.Helper()
			mock.ExpectBegin()
			gormlocktest.ExpectAcquire(t, mock, keys, gormlock.Shared())
			mock.ExpectCommit()
		}, func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, keys, gormlock.Shared()) })
		}, nil},
		"that is refused there": {func(t *testing.T, mock sqlmock.Sqlmock) {
			t.Helper()
			mock.ExpectBegin()
			gormlocktest.ExpectAcquire(t, mock, one, gormlock.Try()).WillReturnResult(gormlocktest.Refused)
			mock.ExpectRollback()
		}, func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, one, gormlock.Try()) })
		}, gormlock.ErrNotAcquired},
		"that comes too late": {func(t *testing.T, mock sqlmock.Sqlmock) {
			t.Helper()
			mock.ExpectBegin()
			gormlocktest.ExpectAcquire(t, mock, one, gormlock.Timeout(time.Second)).WillReturnError(gormlocktest.ErrLockNotAvailable)
			gormlocktest.ExpectUndo(mock)
			mock.ExpectRollback()
		}, func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, one, gormlock.Timeout(time.Second)) })
		}, gormlock.ErrLockTimeout},
		"a versioned write": {func(t *testing.T, mock sqlmock.Sqlmock) {
			t.Helper()
			mock.ExpectBegin()
			mock.ExpectExec(`UPDATE "accounts" SET .*"version"="accounts"."version"\+1 WHERE .*"version"=\$`).WillReturnResult(sqlmock.NewResult(0, 1))
			mock.ExpectCommit()
		}, func(db *gorm.DB) error { return db.Model(&account{ID: 1, Version: 3}).Update("balance", 5).Error }, nil},
		"that is stale": {func(t *testing.T, mock sqlmock.Sqlmock) {
			t.Helper()
			mock.ExpectBegin()
			mock.ExpectExec(`UPDATE "accounts" SET .* WHERE .*"version"=\$`).WillReturnResult(sqlmock.NewResult(0, 0))
			mock.ExpectQuery(`SELECT "id","version" FROM "accounts"`).WillReturnRows(sqlmock.NewRows([]string{"id", "version"}).AddRow(1, 4))
			mock.ExpectRollback()
		}, func(db *gorm.DB) error { return db.Model(&account{ID: 1, Version: 3}).Update("balance", 5).Error }, gormlock.ErrStale},
		"a claim":         {expectTasks, func(db *gorm.DB) error { return claimTasks(db, 2) }, nil},
		"a claim of many": {expectTasks, func(db *gorm.DB) error { return claimTasks(db, 1000) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, mock := mocked(t)
			c.expect(t, mock)
			if err := c.do(db); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

func expectTasks(t *testing.T, mock sqlmock.Sqlmock) {
	t.Helper()
	gormlocktest.ExpectClaim(mock, "tasks", []string{"id", "state"}, []driver.Value{int64(9), "running"}, []driver.Value{int64(3), "running"})
}

func claimTasks(db *gorm.DB, limit int) error {
	tasks, err := gormlock.Claim[task](db, limit, map[string]any{"state": "running"})
	if err == nil && (len(tasks) != 2 || tasks[0] != task{9, "running"} || tasks[1].ID != 3) {
		err = fmt.Errorf("claimed %v", tasks)
	}
	return err
}

// TestExpectationsWithoutKeys: an expectation that could never be met ends the test.
func TestExpectationsWithoutKeys(t *testing.T) {
	t.Parallel()
	_, mock := mocked(t)
	for _, expect := range []func(j *judged){
		func(j *judged) { gormlocktest.ExpectBegin(j, mock, nil) },
		func(j *judged) { gormlocktest.ExpectAcquire(j, mock, []lockkey.Key{gormlock.Key(1.5)}) },
	} {
		j := &judged{TB: t}
		j.run(func() { expect(j) })
		if len(j.fatals) != 1 {
			t.Errorf("%q", j.fatals)
		}
	}
}
