package stand

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/gormlock/gormlock"
)

// ErrorOf is the error of a call that returns a value too.
func ErrorOf[T any](_ T, err error) error { return err }

// Must ends the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// MustBeStale ends the test unless a stale version was refused, and returns the refusal.
func MustBeStale(t testing.TB, err error) *gormlock.StaleError {
	t.Helper()
	var stale *gormlock.StaleError
	if !errors.Is(err, gormlock.ErrStale) || !errors.As(err, &stale) {
		t.Fatalf("want a stale version, got %v", err)
	}
	return stale
}

// Unread is the version of a struct that was not read from its row, or is not known to have what its row has.
const Unread int64 = -1

// MustBeUnread fails the test unless the write was refused because its struct was not read.
func MustBeUnread(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, gormlock.ErrVersionMissing) {
		t.Errorf("want the error of a struct that was not read, got %v", err)
	}
}

// MustStale ends the test unless a stale version was refused.
func MustStale(t testing.TB, err error) {
	t.Helper()
	_ = MustBeStale(t, err)
}

// Equal fails the test if two values differ, and says what they are.
func Equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// Row reads a row without any struct under test.
func Row[T any](t testing.TB, db *gorm.DB, id any) T {
	t.Helper()
	var v T
	Must(t, db.Session(&gorm.Session{NewDB: true}).Unscoped().First(&v, clause.Eq{Column: clause.PrimaryColumn, Value: id}).Error)
	return v
}

// MustDo ends the test if a statement failed.
func MustDo(t testing.TB, db *gorm.DB) *gorm.DB {
	t.Helper()
	if db.Error != nil {
		t.Fatal(db.Error)
	}
	return db
}

// FromServer reports whether err comes from the server.
func FromServer(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer)
}
