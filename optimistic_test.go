package gormlock_test

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

type account struct {
	ID      int64
	Balance int64
	Note    string `gormlock:"unversioned"`
	Version int64  `gorm:"not null;default:1" gormlock:"version"`
}

// versioned opens a schema of its own with tables for the models.
func versioned(t testing.TB, models []any, opts ...pgtest.Option) *gorm.DB {
	t.Helper()
	plugin := gormlock.New()
	opts = append([]pgtest.Option{pgtest.Schema(), pgtest.Plugin(plugin)}, opts...)
	t.Cleanup(func() {
		if c, ok := any(plugin).(io.Closer); ok {
			_ = c.Close()
		}
	})
	db := pgtest.Open(t, opts...)
	if err := db.AutoMigrate(models...); err != nil {
		t.Fatal(err)
	}
	return db
}

// onBoth runs a test on PostgreSQL and on SQLite.
func onBoth(t *testing.T, models []any, test func(t *testing.T, db *gorm.DB)) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, versioned(t, models))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, onSQLite(t, models))
	})
}

func onSQLite(t testing.TB, models []any) *gorm.DB {
	t.Helper()
	dsn := "file:" + filepath.Join(t.TempDir(), "db") + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"
	db, err := gorm.Open(sqlite.Open(dsn), &gorm.Config{Logger: logger.Discard})
	must(t, err)
	pool, err := db.DB()
	must(t, err)
	t.Cleanup(func() { _ = pool.Close() })
	must(t, db.Use(gormlock.New()))
	must(t, db.AutoMigrate(models...))
	return db
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustBeStale(t testing.TB, err error) *gormlock.StaleError {
	t.Helper()
	var stale *gormlock.StaleError
	if !errors.Is(err, gormlock.ErrStale) || !errors.As(err, &stale) {
		t.Fatalf("want a stale version, got %v", err)
	}
	return stale
}

func mustStale(t testing.TB, err error) {
	t.Helper()
	_ = mustBeStale(t, err)
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// row reads a row past every struct under test.
func row[T any](t testing.TB, db *gorm.DB, id any) T {
	t.Helper()
	var v T
	must(t, db.Session(&gorm.Session{NewDB: true}).Unscoped().First(&v, clause.Eq{Column: clause.PrimaryColumn, Value: id}).Error)
	return v
}

func TestVersionBasics(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&account{}}, versionBasics)
}

func versionBasics(t *testing.T, db *gorm.DB) {
	a := account{Balance: 100}
	must(t, db.Create(&a).Error)
	equal(t, "created", a.Version, 1)
	equal(t, "created", row[account](t, db, a.ID).Version, 1)
	b := a
	must(t, db.Model(&a).Update("balance", 90).Error)
	equal(t, "updated", a, account{ID: a.ID, Balance: 90, Version: 2})
	equal(t, "stored", row[account](t, db, a.ID), a)

	err := db.Model(&b).Update("balance", 80).Error
	stale := mustBeStale(t, err)
	equal(t, "message", err.Error(), "gormlock: accounts id=1: version 1 is stale, the row is at 2")
	equal[any](t, "expected", stale.Expected, int64(1))
	equal[any](t, "actual", stale.Actual, int64(2))
	equal(t, "struct", b, account{ID: a.ID, Balance: 100, Version: 1})
	b.Balance = 70
	mustStale(t, db.Save(&b).Error)
	mustStale(t, db.Delete(&b).Error)
	equal(t, "stored", row[account](t, db, a.ID), a)

	must(t, db.Model(&a).Update("note", "x").Error)
	equal(t, "unversioned", row[account](t, db, a.ID), a)
	equal(t, "unversioned", a.Version, 2)
	must(t, db.Model(&a).Update("balance", gorm.Expr("balance + 10")).Error)
	equal(t, "V2", a.Balance, 100)
	equal(t, "V2", row[account](t, db, a.ID), a)
	a.Balance = 1
	must(t, db.Save(&a).Error)
	equal(t, "saved", row[account](t, db, a.ID), a)
	equal(t, "saved", a.Version, 4)
	must(t, db.Model(&account{}).Where("id = ?", a.ID).Update("balance", 5).Error)
	equal(t, "bulk", row[account](t, db, a.ID).Version, 5)
	mustStale(t, db.Delete(&a).Error)
	must(t, db.First(&a).Error)
	must(t, db.Delete(&a).Error)
	e := mustBeStale(t, db.Save(&a).Error)
	equal(t, "gone", e.Deleted, true)
	var missing account
	missing.ID = 5
	must(t, db.Save(&missing).Error)
	equal(t, "natural key", row[account](t, db, 5), missing)
	if err := db.Save(&account{ID: 5, Balance: 6}).Error; !errors.Is(err, gormlock.ErrVersionMissing) {
		t.Error(err)
	}
}

func TestVersionBatch(t *testing.T) {
	t.Parallel()
	onBoth(t, []any{&account{}}, versionBatch)
}

func versionBatch(t *testing.T, db *gorm.DB) {
	all := make([]account, 10)
	must(t, db.Create(&all).Error)
	for i := range all {
		if i%2 == 0 {
			must(t, db.Model(&all[i]).Update("balance", i).Error)
		}
		if i%5 == 0 {
			must(t, db.Model(&all[i]).Update("balance", i).Error)
		}
	}
	must(t, db.Model(&all).Update("balance", 7).Error)
	for _, a := range all {
		equal(t, "row", row[account](t, db, a.ID), a)
	}
	must(t, db.Save(&all).Error)
	for _, a := range all {
		equal(t, "row", row[account](t, db, a.ID), a)
	}
	copies := append([]account(nil), all...)
	must(t, db.Model(&all[3]).Update("balance", 9).Error)
	before := append([]account(nil), copies...)
	mustStale(t, db.Model(&copies).Update("balance", 1).Error)
	mustStale(t, db.Save(&copies).Error)
	mustStale(t, db.Delete(&copies).Error)
	for i := range copies {
		equal(t, "struct", copies[i], before[i])
	}
	for _, a := range all {
		equal(t, "row", row[account](t, db, a.ID), a)
	}
	must(t, db.Delete(&all[4]).Error)
	copies[3] = all[3]
	e := mustBeStale(t, db.Save(&copies).Error)
	equal(t, "gone", e.Deleted, true)
	var n int64
	must(t, db.Model(&account{}).Count(&n).Error)
	equal(t, "count", n, 9)
}
