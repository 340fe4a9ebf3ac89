package gormlocktest_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/gormlocktest"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/lockkey"
)

// onSQLite is a database of SQLite, as a test has it.
func onSQLite() (db *gorm.DB, end func()) {
	dir, err := os.MkdirTemp("", "gormlock")
	if err != nil {
		panic(err)
	}
	db, err = gorm.Open(sqlite.Open("file:"+dir+"/test.db"), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		panic(err)
	}
	pool, err := db.DB()
	if err != nil {
		panic(err)
	}
	return db, func() {
		if err := errors.Join(pool.Close(), os.RemoveAll(dir)); err != nil {
			fmt.Println(err)
		}
	}
}

// Withdrawals under a lock, tested on SQLite.
func ExamplePretendLocks() {
	db, end := onSQLite()
	defer end()
	err := errors.Join(db.Use(gormlock.New()), gormlocktest.PretendLocks(db))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := db.Exec("CREATE TABLE accounts (id INTEGER, balance INTEGER)").Error; err != nil {
		fmt.Println(err)
		return
	}

	err = gormlock.Transaction(db, func(*gorm.DB) error { // a rival
		err := withdraw(db, 7, 10)
		fmt.Println("refused:", errors.Is(err, gormlock.ErrNotAcquired))
		return nil
	}, gormlock.Locking(gormlock.Key("account", 7)))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("refused:", errors.Is(withdraw(db, 7, 10), gormlock.ErrNotAcquired))
	// Output:
	// refused: true
	// refused: false
}

// A test on SQLite that forgot PretendLocks reads of it in the error of every way to take a key.
func TestPretendLocks_isNamedWhereItIsMissing(t *testing.T) {
	t.Parallel()
	db, end := onSQLite()
	defer end()
	if err := errors.Join(db.Use(gormlock.New()), db.Exec("CREATE TABLE accounts (id INTEGER, balance INTEGER)").Error); err != nil {
		t.Fatal(err)
	}
	key, none := gormlock.Key("account", 7), func(*gorm.DB) error { t.Error("it ran"); return nil }
	in := func(call func(tx *gorm.DB) error) error { return db.Transaction(call) }
	for name, err := range map[string]error{
		"Locking":         gormlock.Transaction(db, none, gormlock.Locking(key)),
		"Locking, inside": in(func(tx *gorm.DB) error { return gormlock.Transaction(tx, none, gormlock.Locking(key)) }),
		"AcquireXactLock": in(func(tx *gorm.DB) error { return gormlock.AcquireXactLock(tx, []lockkey.Key{key}) }),
		"WithXactLock": in(func(tx *gorm.DB) error {
			return tx.Scopes(gormlock.WithXactLock(key)).Table("accounts").Find(&[]map[string]any{}).Error
		}),
		"XactLock": in(func(tx *gorm.DB) error {
			return tx.Clauses(gormlock.XactLock(key)).Table("accounts").Where("id = 7").Update("balance", 1).Error
		}),
	} {
		if !errors.Is(err, gormlock.ErrNotPostgres) || !strings.Contains(err.Error(), "gormlocktest.PretendLocks(db)") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPretendLocks_isForTests: a program that is no test gets an error.
func TestPretendLocks_isForTests(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "run", "./testdata/program").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "true" {
		t.Errorf("%s, %v", out, err)
	}
}

// TestPretendLocks_refuses: what it cannot pretend for stays as it is.
func TestPretendLocks_refuses(t *testing.T) {
	t.Parallel()
	if err := gormlocktest.PretendLocks(nil); !errors.Is(err, gorm.ErrInvalidDB) {
		t.Error(err)
	}
	forgotten, err := gorm.Open(sqlite.Open("file:"+filepath.Join(t.TempDir(), "test.db")), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := forgotten.DB()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pool.Close() }()
	if err := gormlocktest.PretendLocks(forgotten); !errors.Is(err, gormlock.ErrNotInstalled) {
		t.Error(err)
	}
	if err := gormlocktest.PretendLocks(pgtest.Open(t, pgtest.Plugin(gormlock.New()))); err == nil || !strings.Contains(err.Error(), "postgres") {
		t.Errorf("on a server that has locks: %v", err)
	}
}

// openPretended is a SQLite with an account, 7.
func openPretended(t *testing.T) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(sqlite.Open("file:"+t.TempDir()+"/test.db"), &gorm.Config{Logger: logger.Discard})
	if err == nil {
		err = db.Use(gormlock.New())
	}
	if err == nil {
		err = gormlocktest.PretendLocks(db)
	}
	if err != nil {
		t.Fatal(err)
	}
	pool, err := db.DB()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	if err := errors.Join(db.AutoMigrate(&Account{}), db.Create(&Account{ID: 7, Balance: 100}).Error); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestWithdraw_timesOut(t *testing.T) {
	t.Parallel()
	db := openPretended(t)
	err := db.Transaction(func(tx *gorm.DB) error { // the rival
		if err := gormlock.AcquireXactLock(tx, []lockkey.Key{accountKey(7)}); err != nil {
			return err
		}
		if err := Withdraw(db, 7, 10); !errors.Is(err, gormlock.ErrLockTimeout) {
			t.Errorf("%v: the rival was not waited for", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := Withdraw(db, 7, 10); err != nil {
		t.Error(err)
	}
}

// TestPretendLocks_ofKeys: all others are errors, as without it.
func TestPretendLocks_ofKeys(t *testing.T) {
	t.Parallel()
	db := openPretended(t)
	inTx := func(body func(tx *gorm.DB) error) error { return db.Transaction(body) }
	for name, err := range map[string]error{
		"a row with Timeout": inTx(func(tx *gorm.DB) error {
			return tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate, gormlock.Timeout(time.Second))).First(&Account{}, 7).Error
		}),
		"SkipLocked": inTx(func(tx *gorm.DB) error { return tx.Clauses(gormlock.SkipLocked()).First(&Account{}, 7).Error }),
		"LockRow":    inTx(func(tx *gorm.DB) error { return gormlock.LockRow(tx, &Account{ID: 7}) }),
		"Claim":      claimError(db),
		"Once":       inTx(func(tx *gorm.DB) error { _, err := gormlock.Once(tx, "k", one); return err }),
	} {
		if !errors.Is(err, gormlock.ErrNotPostgres) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
