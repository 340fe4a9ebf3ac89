package versions_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/dbresolver"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

// mocked is GORM on a driver that says what it is told to.
func mocked(t *testing.T) (*gorm.DB, sqlmock.Sqlmock) {
	t.Helper()
	pool, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherRegexp))
	stand.Must(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard, TranslateError: true})
	stand.Must(t, err)
	stand.Must(t, db.Use(gormlock.New()))
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
	err := db.Model(&stand.Account{ID: 7, Version: 3}).Update("balance", 1).Error
	stand.Equal[any](t, "actual", stand.MustBeStale(t, err).Actual, int64(5))
	stand.Must(t, mock.ExpectationsWereMet())
}

// V11: the row cannot be looked at.
func TestV11_FailingLook(t *testing.T) {
	t.Parallel()
	db, mock := mocked(t)
	mock.ExpectBegin()
	mock.ExpectExec("UPDATE").WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectQuery("SELECT").WillReturnError(errBoom)
	mock.ExpectRollback()
	a := stand.Account{ID: 7, Version: 3}
	err := db.Model(&a).Update("balance", 1).Error
	stand.Equal[any](t, "actual", stand.MustBeStale(t, err).Actual, nil)
	if !errors.Is(err, errBoom) {
		t.Error(err)
	}
	stand.Equal(t, "struct", a, stand.Account{ID: 7, Version: 3})
}

// A statement that fails, or a commit that the server refuses: the struct is as before. After a commit without an answer of the server it counts as
// not read.
func TestV1_DriverErrors(t *testing.T) {
	t.Parallel()
	before := stand.Account{ID: 7, Balance: 1, Version: 3}
	refused := &pgconn.PgError{Code: "23505"}
	for name, c := range map[string]struct {
		expect func(sqlmock.Sqlmock)
		err    error
		after  stand.Account
	}{
		"statement": {func(mock sqlmock.Sqlmock) {
			mock.ExpectBegin()
			mock.ExpectExec("UPDATE").WillReturnError(errBoom)
			mock.ExpectRollback()
		}, errBoom, before},
		"commit": {func(mock sqlmock.Sqlmock) {
			mock.ExpectBegin()
			mock.ExpectExec("UPDATE").WillReturnResult(sqlmock.NewResult(0, 1))
			mock.ExpectCommit().WillReturnError(refused)
		}, refused, before},
		"commit without an answer": {func(mock sqlmock.Sqlmock) {
			mock.ExpectBegin()
			mock.ExpectExec("UPDATE").WillReturnResult(sqlmock.NewResult(0, 1))
			mock.ExpectCommit().WillReturnError(errBoom)
		}, errBoom, stand.Account{ID: 7, Balance: 2, Version: stand.Unread}},
		"begin": {func(mock sqlmock.Sqlmock) { mock.ExpectBegin().WillReturnError(errBoom) }, errBoom, before},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, mock := mocked(t)
			c.expect(mock)
			a := before
			if err := db.Model(&a).Update("balance", 2).Error; !errors.Is(err, c.err) {
				t.Error(err)
			}
			stand.Equal(t, "struct", a, c.after)
		})
	}
}

// G25, G26: with replicas, and the plugin installed twice, a conflict is looked at where it happened.
func TestG26_ReplicasAreNotAsked(t *testing.T) {
	t.Parallel()
	db := stand.Versioned(t, []any{&stand.Account{}})
	var a stand.Account
	stand.Must(t, db.Create(&a).Error)
	old := a
	stand.Must(t, db.Model(&a).Update("balance", 1).Error)
	replica := pgtest.Database(t) // without the table
	stand.Must(t, db.Use(dbresolver.Register(dbresolver.Config{Replicas: []gorm.Dialector{postgres.New(postgres.Config{Conn: pgtest.SQLDB(t, pgtest.Through(replica))})}})))
	stand.Must(t, gormlock.New().Initialize(db))
	if err := db.First(&stand.Account{}, a.ID).Error; err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Fatal("the control must read the replica:", err)
	}
	for _, skip := range []bool{false, true} {
		tx := db.Session(&gorm.Session{SkipDefaultTransaction: skip})
		stand.Equal[any](t, "actual", stand.MustBeStale(t, tx.Model(&old).Update("balance", 2).Error).Actual, a.Version)
		stand.Must(t, tx.Model(&a).Update("balance", 3).Error)
		stand.Must(t, tx.Model(&[]stand.Account{a}).Update("balance", 3).Error)
		stand.Must(t, db.Clauses(dbresolver.Write).First(&a, a.ID).Error)
	}
}
