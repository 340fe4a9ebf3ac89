// Package once tests idempotency keys where it matters: many callers at once, other isolation levels, processes that are
// killed between any two steps, and the sweep.
package once_test

import (
	"os"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/stand"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerJob) != "" {
		os.Exit(runWorker())
	}
	pgtest.Main(m)
}

// Charge is the effect. Nothing but Once keeps it from being stored twice.
type Charge struct {
	ID  int64
	Key string
	By  string
}

// open opens a schema with the tables of the effects and of keys.
func open(t *testing.T, opts ...pgtest.Option) *gorm.DB {
	t.Helper()
	db := stand.Versioned(t, []any{&Charge{}, &payment{}}, opts...)
	if err := gormlock.MigrateOnce(db); err != nil {
		t.Fatal(err)
	}
	return db
}

// charge stores a charge and returns who made it.
func charge(key, by string) func(tx *gorm.DB) (string, error) {
	return func(tx *gorm.DB) (string, error) {
		return by, tx.Create(&Charge{Key: key, By: by}).Error
	}
}

func charges(t *testing.T, db *gorm.DB, key string) int64 {
	t.Helper()
	var n int64
	if err := db.Model(&Charge{}).Where("key = ?", key).Count(&n).Error; err != nil {
		t.Fatal(err)
	}
	return n
}

func keys(t *testing.T, db *gorm.DB) (names []string) {
	t.Helper()
	if err := db.Table("gormlock_once").Order("key").Pluck("key", &names).Error; err != nil {
		t.Fatal(err)
	}
	return names
}
