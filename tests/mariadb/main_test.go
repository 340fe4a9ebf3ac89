// Package mariadb_test holds what is promised on MariaDB, on a server that the tests start. The write paths, modes and doors of
// versions run on it in tests/versions, tests/merges, tests/roots and tests/fences.
package mariadb_test

import (
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/mariaserver"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// account is a row with a version.
type account struct {
	ID      int64
	Balance int64
	Note    string `gorm:"size:100" gormlock:"unversioned"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

// plain is account without a version.
type plain struct {
	ID      int64
	Balance int64
	Note    string `gorm:"size:100"`
}

// open opens a database of the test's own with tables for the models.
func open(t *testing.T, models ...any) *gorm.DB {
	t.Helper()
	return mariaserver.Open(t, models)
}

// begin begins a transaction that is rolled back at the end.
func begin(t *testing.T, db *gorm.DB) *gorm.DB {
	t.Helper()
	tx := db.Begin()
	if tx.Error != nil {
		t.Fatal(tx.Error)
	}
	t.Cleanup(func() { tx.Rollback() })
	return tx
}

// within fails a test that waits longer than it may.
func within(t *testing.T, d time.Duration, do func()) time.Duration {
	t.Helper()
	began := time.Now()
	do()
	took := time.Since(began)
	if took > d {
		t.Errorf("it took %s, more than %s", took, d)
	}
	return took
}
