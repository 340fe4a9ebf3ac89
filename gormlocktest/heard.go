package gormlocktest

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
)

// Texts that depend on options are not repeated here: this file runs gormlock itself and records what it sends.

// errHeard ends a recorded call that asks for rows.
var errHeard = errors.New("gormlocktest: heard")

// heard returns the texts that gormlock executes in an open transaction. The results of the calls do not matter.
// If gormlock executes nothing, the test ends with its error.
func heard(t testing.TB, do func(tx *gorm.DB) error) []string {
	t.Helper()
	tx := &listener{}
	err := do(opened(t, tx))
	if len(tx.texts) == 0 {
		t.Fatal(err)
	}
	return tx.texts
}

// listener is an open transaction that records the texts.
type listener struct{ texts []string }

func (l *listener) ExecContext(_ context.Context, query string, _ ...any) (sql.Result, error) {
	l.texts = append(l.texts, query)
	return granted, nil
}

func (*listener) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, errHeard
}
func (*listener) QueryRowContext(context.Context, string, ...any) *sql.Row  { return &sql.Row{} }
func (*listener) PrepareContext(context.Context, string) (*sql.Stmt, error) { return nil, errHeard }
func (*listener) Commit() error                                             { return nil }
func (*listener) Rollback() error                                           { return nil }

// beginText is the text with which Transaction begins.
func beginText(t testing.TB, opts []gormlock.TxOption) string {
	t.Helper()
	var text string
	pool, ear, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherFunc(func(_, actual string) error {
		text = actual
		return nil
	})))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pool.Close() }() // which nothing expects
	ear.MatchExpectationsInOrder(false)
	ear.ExpectBegin().WillReturnError(errHeard)
	ear.ExpectExec("").WillReturnError(errHeard)
	err = gormlock.Transaction(opened(t, pool), func(*gorm.DB) error { return nil }, opts...)
	switch {
	case text != "":
	case errors.Is(err, errHeard):
		t.Fatal("there is no Locking among the options: this transaction begins as any other, mock.ExpectBegin()")
	default:
		t.Fatal(err)
	}
	return text
}

// opened is GORM with gormlock on a pool, or on something in place of one.
func opened(t testing.TB, pool gorm.ConnPool) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(postgres.New(postgres.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	if err == nil {
		err = db.Use(gormlock.New())
	}
	if err != nil {
		t.Fatal(err)
	}
	return db
}
