package gormlock_test

import (
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// A transaction that begins with a lock: both take one round trip, and what is read afterwards is new.
func ExampleTransaction() {
	type Account struct {
		ID, Balance int64
		Version     int64 `gorm:"default:1" gormlock:"version"`
	}
	db, end := database(&Account{ID: 1, Balance: 100})
	defer end()

	err := gormlock.Transaction(db, func(tx *gorm.DB) error {
		var account Account
		if err := tx.First(&account, 1).Error; err != nil {
			return err
		}
		account.Balance -= 30
		fmt.Println("left:", account.Balance)
		return tx.Save(&account).Error
	}, gormlock.Locking(gormlock.Key("account", 1)))
	if err != nil {
		fmt.Println(err)
	}
	// Output: left: 70
}

// A write that comes too late is tried again from the beginning: the function reads anew.
func ExampleAttempts() {
	type Account struct {
		ID, Balance int64
		Version     int64 `gorm:"default:1" gormlock:"version"`
	}
	db, end := database(&Account{ID: 1, Balance: 100})
	defer end()

	rival := Account{ID: 1, Version: 1} // somebody else, who has read the account as well
	err := gormlock.Transaction(db, func(tx *gorm.DB) error {
		var account Account
		if err := tx.First(&account, 1).Error; err != nil {
			return err
		}
		fmt.Println("read:", account.Balance)
		if account.Version == 1 { // and is quicker
			if err := db.Model(&rival).Update("balance", 50).Error; err != nil {
				return err
			}
		}
		return tx.Model(&account).Update("balance", account.Balance-30).Error
	}, gormlock.Attempts(5))
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// read: 100
	// read: 50
}

// The function learns of each attempt that is followed by another.
func ExampleOnRetry() {
	db, end := database()
	defer end()
	told := func(attempt int, err error) { fmt.Printf("attempt %d: %v\n", attempt, err) }

	attempts := 0
	err := gormlock.Transaction(db, func(*gorm.DB) error {
		if attempts++; attempts < 3 {
			return gormlock.ErrStale // as a write does that came too late
		}
		return nil
	}, gormlock.Attempts(5), gormlock.OnRetry(told))
	if err == nil {
		fmt.Println("done")
	}
	// Output:
	// attempt 1: gormlock: stale version
	// attempt 2: gormlock: stale version
	// done
}

// Timeouts of locks are repeated too, for at most five seconds in all.
func ExampleRetryIf() {
	db, end := database()
	defer end()
	curable := func(err error) bool {
		return gormlock.IsRetryable(err) || errors.Is(err, gormlock.ErrLockTimeout)
	}

	attempts := 0
	err := gormlock.Transaction(db, func(*gorm.DB) error {
		if attempts++; attempts < 3 {
			return gormlock.ErrLockTimeout // as a statement returns that waited too long
		}
		return nil
	}, gormlock.Attempts(5), gormlock.RetryIf(curable), gormlock.Within(5*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("attempts:", attempts)
	// Output: attempts: 3
}

// Another run can cure a stale version. It cannot install the plugin, and a lock that was not granted in time is an answer.
func ExampleIsRetryable() {
	fmt.Println(gormlock.IsRetryable(fmt.Errorf("saving the form: %w", gormlock.ErrStale)))
	fmt.Println(gormlock.IsRetryable(gormlock.ErrNotInstalled))
	fmt.Println(gormlock.IsRetryable(gormlock.ErrLockTimeout))
	// Output:
	// true
	// false
	// false
}
