package gormlock_test

import (
	"fmt"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// A row that was read before is locked and read again: what it holds is new, and stays so until the commit.
func ExampleLockRow() {
	type Account struct{ ID, Balance int64 }
	account := Account{ID: 1, Balance: 100}
	db, end := database(&account)
	defer end()
	account.Balance = 0 // as old as a cache may be

	err := db.Transaction(func(tx *gorm.DB) error {
		if err := gormlock.LockRow(tx, &account); err != nil {
			return err
		}
		fmt.Println("balance:", account.Balance)
		return tx.Model(&account).Update("balance", account.Balance-30).Error
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: balance: 100
}

// Both rows in one statement, in an order that everybody keeps: transfers in both directions never deadlock.
func ExampleLockRows() {
	type Account struct{ ID, Balance int64 }
	db, end := database([]Account{{ID: 1, Balance: 100}, {ID: 2, Balance: 0}})
	defer end()

	pair := []Account{{ID: 2}, {ID: 1}}
	err := db.Transaction(func(tx *gorm.DB) error {
		if err := gormlock.LockRows(tx, &pair); err != nil {
			return err
		}
		pair[0].Balance += 30
		pair[1].Balance -= 30
		return tx.Save(&pair).Error
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pair)
	// Output: [{2 30} {1 70}]
}

// The rows of a query are locked, so that nobody adds a child to what is about to be deleted.
func ExampleWithRowLock() {
	type Customer struct {
		ID     int64
		Closed bool
	}
	db, end := database([]Customer{{ID: 1}, {ID: 2, Closed: true}})
	defer end()

	err := db.Transaction(func(tx *gorm.DB) error {
		var closed []Customer
		if err := tx.Scopes(gormlock.WithRowLock(gormlock.ForUpdate)).Where("closed").Find(&closed).Error; err != nil {
			return err
		}
		fmt.Println("deleting", len(closed))
		return tx.Delete(&closed).Error
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: deleting 1
}

// With the generics API the lock is a clause.
func ExampleRowLock() {
	type Account struct{ ID, Balance int64 }
	db, end := database(&Account{ID: 1, Balance: 100})
	defer end()

	err := db.Transaction(func(tx *gorm.DB) error {
		account, err := gorm.G[Account](tx, gormlock.RowLock(gormlock.ForNoKeyUpdate)).Where("id = ?", 1).First(tx.Statement.Context)
		if err != nil {
			return err // ErrLockTimeout with Timeout, ErrNotAcquired with Try
		}
		fmt.Println("locked:", account.Balance)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: locked: 100
}

// Two processes ask for a free seat at the same moment, and get two.
func ExampleWithSkipLocked() {
	type Seat struct{ ID int64 }
	db, end := database([]Seat{{ID: 1}, {ID: 2}})
	defer end()
	free := func(tx *gorm.DB) (seat Seat, err error) {
		return seat, tx.Scopes(gormlock.WithSkipLocked()).Order("id").First(&seat).Error
	}

	first, second := db.Begin(), db.Begin()
	defer first.Rollback()
	defer second.Rollback()
	for _, tx := range []*gorm.DB{first, second} {
		seat, err := free(tx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("seat", seat.ID)
	}
	// Output:
	// seat 1
	// seat 2
}
