package gormlock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// mocked is GORM on a driver that says what it is told to.
func mocked(t *testing.T) (*gorm.DB, sqlmock.Sqlmock) {
	t.Helper()
	pool, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherRegexp))
	must(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard, TranslateError: true})
	must(t, err)
	must(t, db.Use(gormlock.New()))
	return db, mock
}

// V11: what goes wrong after a conflict does not hide it.
func TestV11_FailingRollback(t *testing.T) {
	t.Parallel()
	db, mock := mocked(t)
	mock.ExpectBegin()
	mock.ExpectExec("UPDATE .* AND \"accounts\".\"version\"=").WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectQuery("SELECT").WillReturnRows(sqlmock.NewRows([]string{"id", "version"}).AddRow(7, 5))
	mock.ExpectRollback().WillReturnError(errBoom)
	err := db.Model(&account{ID: 7, Version: 3}).Update("balance", 1).Error
	equal[any](t, "actual", mustBeStale(t, err).Actual, int64(5))
	must(t, mock.ExpectationsWereMet())
}

// V11: the row cannot be looked at.
func TestV11_FailingLook(t *testing.T) {
	t.Parallel()
	db, mock := mocked(t)
	mock.ExpectBegin()
	mock.ExpectExec("UPDATE").WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectQuery("SELECT").WillReturnError(errBoom)
	mock.ExpectRollback()
	a := account{ID: 7, Version: 3}
	err := db.Model(&a).Update("balance", 1).Error
	equal[any](t, "actual", mustBeStale(t, err).Actual, nil)
	if !errors.Is(err, errBoom) {
		t.Error(err)
	}
	equal(t, "struct", a, account{ID: 7, Version: 3})
}

// A statement that fails, or a commit that does: the struct is as before.
func TestV1_DriverErrors(t *testing.T) {
	t.Parallel()
	for name, expect := range map[string]func(sqlmock.Sqlmock){
		"statement": func(mock sqlmock.Sqlmock) {
			mock.ExpectBegin()
			mock.ExpectExec("UPDATE").WillReturnError(errBoom)
			mock.ExpectRollback()
		},
		"commit": func(mock sqlmock.Sqlmock) {
			mock.ExpectBegin()
			mock.ExpectExec("UPDATE").WillReturnResult(sqlmock.NewResult(0, 1))
			mock.ExpectCommit().WillReturnError(errBoom)
		},
		"begin": func(mock sqlmock.Sqlmock) { mock.ExpectBegin().WillReturnError(errBoom) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, mock := mocked(t)
			expect(mock)
			a := account{ID: 7, Balance: 1, Version: 3}
			if err := db.Model(&a).Update("balance", 2).Error; !errors.Is(err, errBoom) {
				t.Error(err)
			}
			equal(t, "struct", a, account{ID: 7, Balance: 1, Version: 3})
		})
	}
}

// G25, G26: with replicas, and the plugin installed twice, a conflict is looked at where it happened.
func TestG26_ReplicasAreNotAsked(t *testing.T) {
	t.Parallel()
	db := versioned(t, []any{&account{}})
	var a account
	must(t, db.Create(&a).Error)
	old := a
	must(t, db.Model(&a).Update("balance", 1).Error)
	replica := pgtest.Database(t) // without the table
	must(t, db.Use(dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{postgres.New(postgres.Config{Conn: pgtest.SQLDB(t, pgtest.Through(replica))})}})))
	must(t, gormlock.New().Initialize(db))
	if err := db.First(&account{}, a.ID).Error; err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Fatal("the control must read the replica:", err)
	}
	for _, skip := range []bool{false, true} {
		tx := db.Session(&gorm.Session{SkipDefaultTransaction: skip})
		equal[any](t, "actual", mustBeStale(t, tx.Model(&old).Update("balance", 2).Error).Actual, a.Version)
		must(t, tx.Model(&a).Update("balance", 3).Error)
		must(t, tx.Model(&[]account{a}).Update("balance", 3).Error)
		must(t, db.Clauses(dbresolver.Write).First(&a, a.ID).Error)
	}
}
