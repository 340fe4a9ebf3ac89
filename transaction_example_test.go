package gormlock_test

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// A transaction that begins with a lock: both take one round trip, and what is read afterwards is new.
func ExampleTransaction() {
	type Account struct {
		ID, Balance int64
		Version     int64 `gorm:"default:1" gormlock:"version"`
	}
	db, end := database(&Account{})
	defer end()
	if err := db.Create(&Account{ID: 1, Balance: 100}).Error; err != nil {
		fmt.Println(err)
		return
	}

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
	db, end := database(&Account{})
	defer end()
	if err := db.Create(&Account{ID: 1, Balance: 100}).Error; err != nil {
		fmt.Println(err)
		return
	}

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

// Each attempt that fails is told of.
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

// What a retry can cure: a stale version, a deadlock, a lock that was not free.
func ExampleIsRetryable() {
	fmt.Println(gormlock.IsRetryable(fmt.Errorf("saving the form: %w", gormlock.ErrStale)))
	fmt.Println(gormlock.IsRetryable(gormlock.ErrNotInstalled))
	// Output:
	// true
	// false
}
